package org.metastore.spark.estimates

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{ColumnResolver, EvaluationClock, TimedMatch, ValuePredicate}
import org.metastore.spark.pruning.ColumnLookup.{leavesOf, ColumnPath}
import org.metastore.spark.reason.{Attempt, Indexed, Optional}
import org.metastore.spark.statistics.values.ColumnHistogram

/** A column of the statistics as a filter names it. */
private[estimates] final case class ColumnKey(key: String, dataType: DataType)(val leaf: Expression)

/** The histogram of a column, of the table's values or made of the bounds of files. */
private[estimates] final case class KnownHistogram(values: ColumnHistogram, ofTable: Boolean)

/** The values of a column before and after the conditions on it alone. */
private[estimates] final case class ColumnConditions(
    column: ColumnKey,
    conditions: Seq[Expression],
    whole: ColumnHistogram,
    remaining: ColumnHistogram,
    ofTable: Boolean) {

  def source: String =
    if (whole.isComplete) "value counts"
    else if (ofTable) "histogram"
    else "bounds"

  /** The share of rows that satisfies the conditions. */
  val share: Double = ratio(remaining.rows, whole.rows)

  /** The same share among the values between two places. */
  def between(least: Double, most: Double): Double = {
    val all = whole.between(least, most)
    if (all > 0) math.min(1.0, remaining.between(least, most) / all) else share
  }

  /** The same share among nulls, which is all of them or none. */
  val ofNulls: Double = ratio(remaining.nulls, whole.nulls)

  /** The same share among NaN. */
  val ofNans: Double = ratio(remaining.nans, whole.nans)

  private def ratio(part: Double, all: Double): Double = if (all > 0) part / all else 0
}

/** The share of rows that satisfies a condition, by the shares that conditions on one column have, say in a file. */
private[estimates] final class Selectivity(
    val columns: Seq[ColumnConditions],
    val share: (ColumnConditions => Double) => Double)

/** The selectivity of a scan's filter by the values of its columns; conditions on several columns are taken to be independent. */
private[estimates] final class FilterSelectivity(
    conjuncts: Seq[Expression],
    resolver: ColumnResolver,
    histograms: Seq[ColumnKey] => Map[ColumnKey, KnownHistogram]) {
  import FilterSelectivity._

  private val usable: Seq[(Expression, Seq[ColumnKey])] =
    for {
      conjunct <- conjuncts
      if ValuePredicate.canEvaluate(conjunct)
      columns <- columnsOf(conjunct)
    } yield conjunct -> columns

  private val known: Map[ColumnKey, KnownHistogram] = {
    val columns = usable.flatMap(_._2).distinct
    Try(histograms(columns)).getOrElse(Map.empty)
  }

  /** Conditions on one column, together. */
  val columns: Seq[ColumnConditions] = {
    val single = for ((condition, Seq(column)) <- usable) yield column -> condition
    for {
      (column, conditions) <- single.groupBy(_._1).toSeq
      histogram <- known.get(column)
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
    val ofColumns = columns.map(_.share).product
    ofColumns * jointConditions.map(_.share(_.share)).product
  }

  /** The conjuncts whose effect is known. */
  val estimatedConjuncts: Seq[Expression] = {
    val single =
      for ((condition, Seq(column)) <- usable if columns.exists(_.column == column))
        yield condition
    single ++ joint.map(_._1)
  }

  /** Whether the effect of every condition is known. */
  def isEstimated: Boolean = estimatedConjuncts.size == conjuncts.size

  /** The columns that Spark estimates the filter by, by their keys. */
  val columnKeys: Set[String] = Indexed.set(usable.flatMap(_._2))(_.key)

  /** Whether nothing but the counts of all values was needed. */
  def isExact: Boolean =
    columns.size == 1 && joint.isEmpty && isEstimated && columns.head.whole.isComplete

  /** The columns that a condition reads; None where one of them is not known, or there is none. */
  private def columnsOf(condition: Expression): Option[Seq[ColumnKey]] = {
    val leaves = leavesOf(condition)
    val columns = leaves.flatMap(columnOf)
    val areKnown = columns.nonEmpty && columns.size == leaves.size
    Optional.when(areKnown)(columns.distinct)
  }

  private def columnOf(leaf: Expression): Option[ColumnKey] =
    resolver.keyOf(leaf).map(ColumnKey(_, leaf.dataType)(leaf))

  private def restrict(
      column: ColumnKey,
      conditions: Seq[Expression],
      histogram: KnownHistogram): Option[ColumnConditions] = {
    val whole = histogram.values
    if (whole.rows <= 0) None
    else
      for (remaining <- ColumnPredicate.select(whole, conditions, column.leaf))
        yield ColumnConditions(column, conditions, whole, remaining, histogram.ofTable)
  }

  /** The values of a column that the conditions on it alone leave, where there are any. */
  private def remaining(column: ColumnKey): Option[KnownHistogram] =
    columns.find(_.column == column) match {
      case Some(restricted) =>
        Some(KnownHistogram(restricted.remaining, restricted.ofTable))
      case None =>
        known.get(column)
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

  /** The share among sample rows whose values are drawn independently, the same rows each time. */
  private def sampled(condition: Expression, columns: Seq[ColumnKey]): Option[Double] = {
    val histograms = for (column <- columns; known <- remaining(column)) yield known.values
    if (histograms.size < columns.size || histograms.exists(_.buckets.isEmpty)) None
    else Attempt.orNone {
      val matching = countSamples(bind(condition, columns), histograms)
      val notNull = histograms.map(column => column.values / math.max(1.0, column.rows)).product
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
        val place = (i * Steps(c % Steps.size)) % 1
        row.update(c, histograms(c).sample(place))
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
