package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Filter, LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.FilterEstimation
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.ExpressionColumns
import org.metastore.spark.statistics.values.ColumnHistogram

/** The filter of a scan, for estimates. */
final class FilterRequest private[spark] (
    conjuncts: Seq[Expression],
    resolver: ExpressionColumns,
    private[estimates] val histograms: Seq[(String, DataType)] => Map[(String, DataType), ColumnHistogram],
    output: Seq[Attribute],
    joins: JoinKeys,
    isTaken: Expression => Boolean) {

  /** The distinct counts that make estimates of joins right, by the key of the column. */
  private[estimates] lazy val joinDistinctCounts: Map[String, Double] = {
    val counts = for {
      column <- output
      count <- joins.distinctCount(column.exprId)
      key <- resolver.key(column, Nil)
    } yield key -> count
    counts.toMap
  }

  /** The share of the rows that remain after semi and anti joins; Spark's own estimate keeps all rows. */
  private[estimates] lazy val joinShare: Double =
    output.map(column => joins.remainingShare(column.exprId)).product

  /** The conjuncts over columns of the statistics, which also stand for expressions. */
  private val conditions = conjuncts.map(resolver.overColumns(_))

  def isEmpty: Boolean = conjuncts.isEmpty

  /** The indices of some of the conjuncts. */
  private[estimates] def indicesOf(selected: Seq[Expression]): Set[Int] =
    conditions.indices.filter(i => selected.exists(_ eq conditions(i))).toSet

  private[estimates] def on(histograms: Seq[ColumnKey] => Map[ColumnKey, ScanHistogram]): FilterSelectivity =
    new FilterSelectivity(conditions, resolver, histograms)

  /** The share of rows that match some of the conjuncts, as Spark estimates it from column statistics. */
  private[estimates] def sparkShare(
      selected: Seq[Expression],
      stat: (String, DataType) => Option[ColumnStat]): Double = {
    val indices = indicesOf(selected)
    val estimated = for (i <- conjuncts.indices if indices(i) && !isTaken(conjuncts(i))) yield conjuncts(i)
    val columns = estimated.flatMap(_.references).distinct
    val columnStats =
      for {
        column <- columns
        key <- resolver.key(column, Nil)
        columnStat <- stat(key, column.dataType)
      } yield column -> columnStat
    val stats = Statistics(sizeInBytes = 1, Some(SparkSelectivity.Rows), AttributeMap(columnStats))
    SparkSelectivity.share(estimated, stats, columns)
  }
}

/** Spark's own estimate of a filter, by statistics of the columns. */
private[estimates] object SparkSelectivity {
  val Rows: BigInt = BigInt(10).pow(15) // many: Spark rounds its estimate up

  /** The share of rows that match the filter. */
  def share(conjuncts: Seq[Expression], stats: Statistics, output: Seq[Attribute]): Double = {
    val relation = RelationWithStatistics(output, stats)
    val share = for {
      condition <- conjuncts.reduceOption(And(_, _))
      rows <- stats.rowCount
      estimate <- FilterEstimation(Filter(condition, relation)).estimate
      matching <- estimate.rowCount
      if rows > 0
    } yield (BigDecimal(matching) / BigDecimal(rows)).toDouble
    share.getOrElse(1.0)
  }

  private final case class RelationWithStatistics(output: Seq[Attribute], statistics: Statistics)
    extends LeafNode {
    override def computeStats(): Statistics = statistics
  }
}
