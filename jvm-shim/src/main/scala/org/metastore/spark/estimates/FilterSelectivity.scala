package org.metastore.spark.estimates

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{ColumnResolver, EvaluationClock, TimedMatch, ValuePredicate}
import org.metastore.spark.pruning.ColumnLookup.{leavesOf, ColumnPath}
import org.metastore.spark.reason.{Attempt, Indexed, Optional}
import org.metastore.spark.statistics.values.ColumnHistogram

/** A column of the statistics; `leaf` is the expression that reads it in a filter. */
private[estimates] final case class ColumnKey(key: String, dataType: DataType)(val leaf: Expression)

/** The histogram of a column, from the table's values or from the bounds of files. */
private[estimates] final case class ScanHistogram(values: ColumnHistogram, isFromTable: Boolean)

/** The values of a column before and after the conditions that read no other column. */
private[estimates] final case class ColumnConditions(
    column: ColumnKey,
    conditions: Seq[Expression],
    unfiltered: ColumnHistogram,
    remaining: ColumnHistogram,
    isFromTable: Boolean) {

  def source: String =
    if (unfiltered.isComplete) "value counts"
    else if (isFromTable) "histogram"
    else "bounds"

  /** The share of rows that satisfies the conditions. */
  val share: Double = ratio(remaining.rows, unfiltered.rows)

  /** The share of the values between two positions that satisfies the conditions. */
  def between(least: Double, most: Double): Double = {
    val all = unfiltered.between(least, most)
    if (all > 0) math.min(1.0, remaining.between(least, most) / all) else share
  }

  /** The share of NULLs that satisfies the conditions: 0 or 1. */
  val nullShare: Double = ratio(remaining.nulls, unfiltered.nulls)

  /** The share of NaNs that satisfies the conditions: 0 or 1. */
  val nanShare: Double = ratio(remaining.nans, unfiltered.nans)

  private def ratio(part: Double, all: Double): Double = if (all > 0) part / all else 0
}

/**
 * The share of rows that satisfies a condition on several columns.
 *
 * @param share computes it from the shares of conditions on one column, such as their shares in one file
 */
private[estimates] final class Selectivity(
    val columns: Seq[ColumnConditions],
    val share: (ColumnConditions => Double) => Double)

/** The selectivity of a scan's filter by the values of its columns, which are assumed to be independent. */
private[estimates] final class FilterSelectivity(
    conjuncts: Seq[Expression],
    resolver: ColumnResolver,
    loadHistograms: Seq[ColumnKey] => Map[ColumnKey, ScanHistogram]) {
  import FilterSelectivity._

  private val usable: Seq[(Expression, Seq[ColumnKey])] =
    for {
      conjunct <- conjuncts
      if ValuePredicate.canEvaluate(conjunct)
      columns <- columnsOf(conjunct)
    } yield conjunct -> columns

  private val histograms: Map[ColumnKey, ScanHistogram] = {
    val columns = usable.flatMap(_._2).distinct
    Try(loadHistograms(columns)).getOrElse(Map.empty)
  }

  /** The conditions that read one column, by that column. */
  val columns: Seq[ColumnConditions] = {
    val single = for ((condition, Seq(column)) <- usable) yield column -> condition
    for {
      (column, conditions) <- single.groupBy(_._1).toSeq
      histogram <- histograms.get(column)
      restricted <- restrict(column, conditions.map(_._2), histogram)
    } yield restricted
  }

  private val joint: Seq[(Expression, Selectivity)] =
    for {
      (condition, columns) <- usable
      if columns.size > 1 && leavesOf(condition).size <= MostLeaves
      selectivity <- shareOf(condition, columns)
    } yield condition -> selectivity

  /** The selectivity of each condition on several columns. */
  val jointConditions: Seq[Selectivity] = joint.map(_._2)

  /** The share of all rows that satisfies every condition. */
  def share: Double = {
    val columnShare = columns.map(_.share).product
    columnShare * jointConditions.map(_.share(_.share)).product
  }

  /** The conjuncts that could be estimated. */
  val estimatedConjuncts: Seq[Expression] = {
    val single =
      for ((condition, Seq(column)) <- usable if columns.exists(_.column == column))
        yield condition
    single ++ joint.map(_._1)
  }

  /** Whether every condition could be estimated. */
  def isEstimated: Boolean = estimatedConjuncts.size == conjuncts.size

  /** The keys of the columns by which Spark estimates the filter. */
  val columnKeys: Set[String] = Indexed.set(usable.flatMap(_._2))(_.key)

  /** Whether the share follows from counts of all values. */
  def isExact: Boolean =
    columns.size == 1 && joint.isEmpty && isEstimated && columns.head.unfiltered.isComplete

  /** The columns that a condition reads; None if it reads none, or one that the statistics do not have. */
  private def columnsOf(condition: Expression): Option[Seq[ColumnKey]] = {
    val leaves = leavesOf(condition)
    val columns = leaves.flatMap(columnOf)
    val areComplete = columns.nonEmpty && columns.size == leaves.size
    Optional.when(areComplete)(columns.distinct)
  }

  private def columnOf(leaf: Expression): Option[ColumnKey] =
    resolver.keyOf(leaf).map(ColumnKey(_, leaf.dataType)(leaf))

  private def restrict(
      column: ColumnKey,
      conditions: Seq[Expression],
      histogram: ScanHistogram): Option[ColumnConditions] = {
    val unfiltered = histogram.values
    if (unfiltered.rows <= 0) None
    else
      for (remaining <- ColumnPredicate.select(unfiltered, conditions, column.leaf))
        yield ColumnConditions(column, conditions, unfiltered, remaining, histogram.isFromTable)
  }

  /** The values of a column that match the conditions on it, or all of them if there are no conditions. */
  private def remaining(column: ColumnKey): Option[ScanHistogram] =
    columns.find(_.column == column) match {
      case Some(restricted) =>
        Some(ScanHistogram(restricted.remaining, restricted.isFromTable))
      case None =>
        histograms.get(column)
    }

  /** The share of rows that satisfies a condition on several columns. */
  private def shareOf(condition: Expression, columns: Seq[ColumnKey]): Option[Selectivity] =
    (condition, columns) match {
      case (_, Seq(column)) =>
        for {
          histogram <- remaining(column)
          restricted <- restrict(column, Seq(condition), histogram)
        } yield new Selectivity(Seq(restricted), shares => shares(restricted))
      case (And(left, right), _) =>
        both(left, right)(_ * _)
      case (Or(left, right), _) =>
        both(left, right)((a, b) => a + b - a * b)
      case (EqualTo(ColumnPath(_, _), ColumnPath(_, _)), Seq(a, b)) =>
        for (first <- remaining(a); second <- remaining(b)) yield {
          val distinct = math.max(first.values.distinct, second.values.distinct)
          constant(1 / math.max(1.0, distinct))
        }
      case _ =>
        sampled(condition, columns).map(constant)
    }

  private def constant(share: Double) = new Selectivity(Nil, _ => share)

  private def both(left: Expression, right: Expression)(
      join: (Double, Double) => Double): Option[Selectivity] =
    for {
      leftColumns <- columnsOf(left)
      rightColumns <- columnsOf(right)
      a <- shareOf(left, leftColumns)
      b <- shareOf(right, rightColumns)
    } yield new Selectivity(a.columns ++ b.columns, shares => join(a.share(shares), b.share(shares)))

  /** The share among sample rows. Their values are drawn independently, and are the same each time. */
  private def sampled(condition: Expression, columns: Seq[ColumnKey]): Option[Double] = {
    val samples = for (column <- columns; histogram <- remaining(column)) yield histogram.values
    if (samples.size < columns.size || samples.exists(_.buckets.isEmpty)) None
    else Attempt.orNone {
      val matching = countSamples(bind(condition, columns), samples)
      val notNull = samples.map(column => column.values / math.max(1.0, column.rows)).product
      math.max(matching, 0.5) / Samples * notNull
    }
  }

  /** The condition over rows of these columns. */
  private def bind(condition: Expression, columns: Seq[ColumnKey]): Expression = condition.transformDown {
    case leaf if columns.exists(_.leaf.semanticEquals(leaf)) =>
      val ordinal = columns.indexWhere(_.leaf.semanticEquals(leaf))
      BoundReference(ordinal, leaf.dataType, nullable = true)
  }

  private def countSamples(bound: Expression, histograms: Seq[ColumnHistogram]): Int = {
    val row = new GenericInternalRow(histograms.size)
    val clock = new EvaluationClock
    val timed = TimedMatch.within(bound, clock)
    (1 to Samples).count { i =>
      for (c <- histograms.indices) {
        val share = (i * Steps(c % Steps.size)) % 1
        row.update(c, histograms(c).sample(share))
      }
      clock.run(timed.eval(row)) == true
    }
  }
}

private[estimates] object FilterSelectivity {
  private val Samples = 2000
  private val MostLeaves = 64 // of one conjunct: each is evaluated on the values of its column
  private val Steps = Seq(2, 3, 5, 7, 11, 13).map(prime => math.sqrt(prime.toDouble))
}
