package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Filter, LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.FilterEstimation
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.ExpressionColumns
import org.metastore.spark.statistics.values.ColumnHistogram

/** The filter of a scan, to be estimated. */
final class FilterRequest private[spark] (
    conjuncts: Seq[Expression],
    resolver: ExpressionColumns,
    private[estimates] val histograms: Seq[(String, DataType)] => Map[(String, DataType), ColumnHistogram],
    output: Seq[Attribute],
    joins: JoinKeys,
    isTaken: Expression => Boolean) {

  /** Distinct counts that make estimates of joins right, by key of the column. */
  private[estimates] lazy val joinDistinctCounts: Map[String, Double] = {
    val counts = for {
      column <- output
      count <- joins.distinctCount(column.exprId)
      key <- resolver.key(column, Nil)
    } yield key -> count
    counts.toMap
  }

  /** The share of the rows that semi joins and anti joins leave: Spark's estimate of these joins keeps all rows of the scan. */
  private[estimates] lazy val leftByJoins: Double =
    output.map(column => joins.remainingShare(column.exprId)).product

  /** The conjuncts over columns of the statistics: Spark sees expressions where the statistics have columns. */
  private val conditions = conjuncts.map(resolver.overColumns(_))

  def isEmpty: Boolean = conjuncts.isEmpty

  /** The places of some of the conjuncts among all. */
  private[estimates] def places(selected: Seq[Expression]): Set[Int] =
    conditions.indices.filter(i => selected.exists(_ eq conditions(i))).toSet

  private[estimates] def on(histograms: Seq[ColumnKey] => Map[ColumnKey, KnownHistogram]): FilterSelectivity =
    new FilterSelectivity(conditions, resolver, histograms)

  /** The share of rows that some of the conjuncts let through, as Spark estimates it from column statistics. */
  private[estimates] def sparkShare(
      selected: Seq[Expression],
      stat: (String, DataType) => Option[ColumnStat]): Double = {
    val wanted = places(selected)
    val asWritten = for (i <- conjuncts.indices if wanted(i) && !isTaken(conjuncts(i))) yield conjuncts(i)
    val columns = asWritten.flatMap(_.references).distinct
    val columnStats =
      for {
        column <- columns
        key <- resolver.key(column, Nil)
        known <- stat(key, column.dataType)
      } yield column -> known
    val stats = Statistics(sizeInBytes = 1, Some(SparkSelectivity.Rows), AttributeMap(columnStats))
    SparkSelectivity.share(asWritten, stats, columns)
  }
}

/** Spark's own estimate of a filter, by statistics of the columns. */
private[estimates] object SparkSelectivity {
  val Rows: BigInt = BigInt(10).pow(15) // so many that rounding them up changes no share

  /** The share of rows that the filter lets through. */
  def share(conjuncts: Seq[Expression], stats: Statistics, output: Seq[Attribute]): Double = {
    val relation = RelationWithStatistics(output, stats)
    val share = for {
      condition <- conjuncts.reduceOption(And(_, _))
      before <- stats.rowCount
      estimated <- FilterEstimation(Filter(condition, relation)).estimate
      after <- estimated.rowCount
      if before > 0
    } yield (BigDecimal(after) / BigDecimal(before)).toDouble
    share.getOrElse(1.0)
  }

  private final case class RelationWithStatistics(output: Seq[Attribute], known: Statistics)
    extends LeafNode {
    override def computeStats(): Statistics = known
  }
}
