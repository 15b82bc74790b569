package org.apache.spark.sql.metastore

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{ScanBuilder, SupportsPushDownV2Filters}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy

/**
 * The predicates that Spark pushed into a scan of a table.
 *
 * @param unasked predicates that were not offered to the table format
 * @param taken   predicates that it evaluates alone: the filter above the scan does not have them any more
 */
final case class PushedPredicates(unasked: Seq[Predicate] = Nil, taken: Seq[Predicate] = Nil) {

  /** Whether a conjunct of the filter above the scan is one that the format took over. */
  def isTaken(conjunct: Expression): Boolean =
    taken.nonEmpty && DataSourceV2Strategy.translateFilterV2(conjunct).exists(taken.contains)
}

object PushedPredicates {

  /**
   * Pushes conjuncts into a builder as Spark's push-down does. Spark's own method
   * (`PushDownUtils.pushFilters`) has other parameters on 4.3 than on 4.1, and one build serves both.
   */
  def push(builder: ScanBuilder, conjuncts: Seq[Expression]): Unit = builder match {
    case filtered: SupportsPushDownV2Filters =>
      val predicates = conjuncts.flatMap(conjunct => DataSourceV2Strategy.translateFilterV2(conjunct))
      filtered.pushPredicates(predicates.toArray)
    case _ =>
  }
}
