package org.metastore.spark.estimates

import java.util.IdentityHashMap
import java.util.Arrays.stream

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Filter, LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.FilterEstimation
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{
  ColumnResolver, EvaluationClock, ExpressionColumns, TimedMatch, ValuePredicate
}
import org.metastore.spark.pruning.ColumnLookup.{leavesOf, ColumnPath}
import org.metastore.spark.reason.Recoverable
import org.metastore.spark.statistics.columns.CatalystValue
import org.metastore.spark.statistics.values.ColumnHistogram

/** A column of the statistics as a filter names it. */
private[estimates] final case class ColumnKey(key: String, dataType: DataType)(val leaf: Expression)

/** The values of a column before and after the conditions on it alone. */
private[estimates] final case class ColumnConditions(
    asked: ColumnKey,
    conditions: Seq[Expression],
    whole: ColumnHistogram,
    kept: ColumnHistogram,
    ofTable: Boolean) {

  def source: String = if (whole.isComplete) "value counts" else if (ofTable) "histogram" else "bounds"

  /** The share of rows that satisfies the conditions. */
  val share: Double = if (whole.rows > 0) kept.rows / whole.rows else 0

  /** The same share among the values between two places. */
  def between(least: Double, most: Double): Double = {
    val all = whole.between(least, most)
    if (all > 0) math.min(1.0, kept.between(least, most) / all) else share
  }

  /** The same share among nulls, which is all of them or none. */
  val ofNulls: Double = if (whole.nulls > 0) kept.nulls / whole.nulls else 0

  /** The same share among NaN. */
  val ofNans: Double = if (whole.nans > 0) kept.nans / whole.nans else 0
}

/** The share of rows that satisfies a condition, `of` the shares that conditions on one column have, say in a file. */
private[estimates] final class Selectivity(
    val columns: Seq[ColumnConditions],
    val of: (ColumnConditions => Double) => Double)

/** What a scan's filter leaves by the values of its columns: conditions on several are taken to be independent. */
private[estimates] final class FilterSelectivity(
    conjuncts: Seq[Expression],
    resolver: ColumnResolver,
    histograms: Seq[ColumnKey] => Map[ColumnKey, (ColumnHistogram, Boolean)]) {
  import FilterSelectivity._

  private val usable = conjuncts.filter(ValuePredicate.canEvaluate)
    .flatMap(c => columnsOf(c).map(c -> _))

  private val known: Map[ColumnKey, (ColumnHistogram, Boolean)] =
    Try(histograms(usable.flatMap(_._2).distinct)).getOrElse(Map.empty)

  /** Conditions on one column, together. */
  val columns: Seq[ColumnConditions] = usable.collect { case (condition, Seq(asked)) => asked -> condition }
    .groupBy(_._1).toSeq.flatMap { case (asked, of) => restricted(asked, of.map(_._2), known.get(asked)) }

  private val joint: Seq[(Expression, Selectivity)] = usable.collect {
    case (condition, asked) if asked.size > 1 && leavesOf(condition).size <= MostLeaves =>
      shareOf(condition, asked).map(condition -> _)
  }.flatten

  /** What each of the conditions on several columns lets through. */
  val jointConditions: Seq[Selectivity] = joint.map(_._2)

  /** The share of all rows that satisfies every condition. */
  def share: Double = columns.map(_.share).product * jointConditions.map(_.of(_.share)).product

  /** The conjuncts whose effect is known. */
  val estimatedConjuncts: Seq[Expression] = usable.collect {
    case (condition, Seq(asked)) if columns.exists(_.asked == asked) => condition
  } ++ joint.map(_._1)

  /** Whether the effect of every condition is known. */
  def isEstimated: Boolean = estimatedConjuncts.size == conjuncts.size

  /** The columns that Spark estimates the filter by, by their keys. */
  val columnKeys: Set[String] = usable.flatMap(_._2).map(_.key).toSet

  /** Whether nothing but the counts of all values was needed. */
  def isExact: Boolean = columns.size == 1 && joint.isEmpty && isEstimated && columns.head.whole.isComplete

  private def columnsOf(condition: Expression): Option[Seq[ColumnKey]] = {
    val leaves = leavesOf(condition)
    val found = leaves.collect {
      case leaf @ ColumnPath(root, path) if !resolver.isMetadata(root) =>
        resolver.key(root, path).map(ColumnKey(_, leaf.dataType)(leaf))
    }.flatten
    if (found.size < leaves.size || found.isEmpty) None else Some(found.distinct)
  }

  private def restricted(
      asked: ColumnKey,
      conditions: Seq[Expression],
      column: Option[(ColumnHistogram, Boolean)]): Option[ColumnConditions] =
    for ((whole, ofTable) <- column if whole.rows > 0;
      kept <- ColumnPredicate.select(whole, conditions, asked.leaf))
      yield ColumnConditions(asked, conditions, whole, kept, ofTable)

  /** The values of a column that the conditions on it alone leave, where there are any. */
  private def remaining(asked: ColumnKey): Option[(ColumnHistogram, Boolean)] =
    columns.find(_.asked == asked).map(one => (one.kept, one.ofTable)).orElse(known.get(asked))

  /** The share of rows that satisfies a condition on several columns. */
  private def shareOf(condition: Expression, asked: Seq[ColumnKey]): Option[Selectivity] = asked match {
    case Seq(one) =>
      restricted(one, Seq(condition), remaining(one)).map(column => new Selectivity(Seq(column), _(column)))
    case _ => condition match {
        case And(left, right) => both(left, right)(_ * _)
        case Or(left, right) => both(left, right)((a, b) => a + b - a * b)
        case EqualTo(left, right) if asked.size == 2 && isLeaf(left) && isLeaf(right) =>
          val counts = asked.flatMap(remaining(_)).map(_._1.distinct)
          if (counts.size == 2) Some(constant(1 / math.max(1.0, counts.max))) else None
        case other => sampled(other, asked).map(constant)
      }
  }

  private def constant(share: Double) = new Selectivity(Nil, _ => share)

  private def both(
      left: Expression,
      right: Expression)(joined: (Double, Double) => Double): Option[Selectivity] =
    for (l <- columnsOf(left); r <- columnsOf(right); a <- shareOf(left, l); b <- shareOf(right, r))
      yield new Selectivity(a.columns ++ b.columns, among => joined(a.of(among), b.of(among)))

  /** By rows that are put together of values drawn independently, the same ones each time. */
  private def sampled(condition: Expression, asked: Seq[ColumnKey]): Option[Double] = {
    val whole = asked.flatMap(remaining(_)).map(_._1)
    if (whole.size < asked.size || whole.exists(_.buckets.isEmpty)) None
    else EvaluationFailure.orNone {
      val bound = condition.transformDown {
        case one if asked.exists(_.leaf.semanticEquals(one)) =>
          BoundReference(asked.indexWhere(_.leaf.semanticEquals(one)), one.dataType, nullable = true)
      }
      val row = new GenericInternalRow(asked.size)
      val clock = new EvaluationClock
      val timed = TimedMatch.within(bound, clock)
      val held = (1 to Samples).count { i =>
        whole.indices.foreach(c => row.update(c, whole(c).sample((i * Steps(c % Steps.size)) % 1)))
        clock.run(timed.eval(row)) == true
      }
      val filled = whole.map(column => column.values / math.max(1.0, column.rows)).product
      math.max(held, 0.5) / Samples * filled
    }
  }
}

private[estimates] object EvaluationFailure {

  /** None where evaluating a condition fails, by an error of its own stack and classes too, without harm to who plans a query. */
  def orNone[A](evaluate: => A): Option[A] =
    try Some(evaluate)
    catch { case Recoverable(_) => None }
}

private[estimates] object FilterSelectivity {
  private val Samples = 2000
  private val MostLeaves = 64 // of one conjunct: each is evaluated on the values of its column
  private val Steps = Seq(2, 3, 5, 7, 11, 13).map(prime => math.sqrt(prime.toDouble))

  private def isLeaf(expression: Expression): Boolean = ColumnPath.unapply(expression).isDefined
}

/** The filter of a scan, not yet estimated. */
final class FilterRequest private[spark] (
    conjuncts: Seq[Expression],
    resolver: ExpressionColumns,
    private[estimates] val histograms: Seq[(String, DataType)] => Map[(String, DataType), ColumnHistogram],
    output: Seq[Attribute],
    joins: JoinKeys,
    isTaken: Expression => Boolean) {

  /** Distinct counts that make estimates of joins right, by key of the column. */
  private[estimates] lazy val joinDistinctCounts: Map[String, Double] =
    output.flatMap(column =>
      joins.of(column.exprId).flatMap(count => resolver.key(column, Nil).map(_ -> count))).toMap

  /** The share of the rows that semi joins and anti joins leave: Spark takes their rows to be all those of the scan. */
  private[estimates] lazy val leftByJoins: Double = output.map(column => joins.leftOf(column.exprId)).product

  /** The conjuncts as the statistics know them: Spark sees expressions where these have columns. */
  private val conditions = conjuncts.map(one => resolver.replaceIn(one).getOrElse(one))

  def isEmpty: Boolean = conjuncts.isEmpty

  /** The places of some of the conjuncts among all. */
  private[estimates] def places(some: Seq[Expression]): Set[Int] =
    conditions.indices.filter(i => some.exists(_ eq conditions(i))).toSet

  private[estimates] def on(histograms: Seq[ColumnKey] => Map[ColumnKey, (ColumnHistogram, Boolean)])
      : FilterSelectivity =
    new FilterSelectivity(conditions, resolver, histograms)

  /** The share of rows that some of the conjuncts let through, as Spark estimates it of those that it sees. */
  private[estimates] def sparkShare(
      some: Seq[Expression],
      stat: (String, DataType) => Option[ColumnStat]): Double = {
    val asWritten = conjuncts.indices.filter(places(some)).map(conjuncts).filterNot(isTaken)
    val output = asWritten.flatMap(_.references).distinct
    val stats = output.flatMap(a => resolver.key(a, Nil).flatMap(stat(_, a.dataType)).map(a -> _))
    SparkSelectivity.share(
      asWritten,
      Statistics(sizeInBytes = 1, Some(SparkSelectivity.Rows), AttributeMap(stats)),
      output)
  }
}

/** What Spark's own estimator makes of a filter, given numbers of the columns. */
private[estimates] object SparkSelectivity {
  val Rows: BigInt = BigInt(10).pow(15) // so many that rounding them up changes no share

  /** The share of rows that it lets through. */
  def share(conjuncts: Seq[Expression], stats: Statistics, output: Seq[Attribute]): Double =
    (for {
      condition <- conjuncts.reduceOption(And(_, _))
      before <- stats.rowCount
      after <- FilterEstimation(Filter(
        condition,
        RelationWithStatistics(output, stats))).estimate.flatMap(_.rowCount)
      if before > 0
    } yield (BigDecimal(after) / BigDecimal(before)).toDouble).getOrElse(1.0)

  private final case class RelationWithStatistics(output: Seq[Attribute], known: Statistics)
    extends LeafNode {
    override def computeStats(): Statistics = known
  }
}

/** How many rows of files satisfy a filter: within a file conditions are independent, not within the table. */
private[estimates] final class MatchingRowCount(
    filter: FilterSelectivity,
    statistics: PartitionStatistics,
    kept: Array[Int],
    rows: Int => Double,
    live: Int => Double,
    all: Double,
    dropped: Seq[Expression] => Double,
    isAncestor: Boolean) {
  import MatchingRowCount._

  private val (physical, left) =
    (stream(kept).mapToDouble(rows(_)).sum, stream(kept).mapToDouble(live(_)).sum)

  private val columns = filter.columns.map(new OfColumn(_))

  /** The number of rows. */
  lazy val number: Double =
    if (columns.isEmpty && filter.jointConditions.isEmpty) left
    else if (kept.length > mostFiles) left * ofColumns * filter.jointConditions.map(_.of(_.share)).product
    else {
      val shares = if (isOneColumn && isAncestor) Nil else columns.map(_.shares)
      val parts = new IdentityHashMap[ColumnConditions, OfColumn]
      def among(file: Int)(part: ColumnConditions) =
        parts.computeIfAbsent(part, new OfColumn(_)).shareOf(file)
      val found = kept.indices.iterator.map { i =>
        live(kept(i)) * shares.iterator.map(_(i)).product * filter.jointConditions.iterator.map(
          _.of(among(kept(i)))).product
      }.sum
      if (isOneColumn && isAncestor) found * ofColumns else found
    }

  /** The share of rows that satisfies the conditions on one column, of the table as a whole. */
  private def ofColumns: Double =
    columns.map(c => math.min(1.0, c.expected / math.max(1.0, physical))).product

  /** Whether everything that dropped files is a condition on one column. */
  private def isOneColumn: Boolean = filter.jointConditions.isEmpty && filter.columns.count(drops(_)) <= 1

  // Every join demands keys that are not null, of which each file has its share. What is known of the files read alone,
  // as of a column of partitions, does not tell what was dropped.
  private def drops(column: ColumnConditions): Boolean =
    filter.columns.size == 1 || !column.ofTable || column.kept.values < column.whole.values

  // What lies between two places among overlapping bounds takes a look at all of them.
  private def mostFiles: Int =
    if ((filter.columns ++ filter.jointConditions.flatMap(_.columns)).forall(_.ofTable)) MostFiles
    else MostOverlapping

  /** Rows that the conditions on one column leave: of files that the statistics do not tell of, all may match. */
  private final class OfColumn(column: ColumnConditions) {
    private val summary = statistics.column(column.asked.key, column.asked.dataType).toOption
    private lazy val rowsTold = stream(kept).filter(isTold(_)).mapToDouble(rows(_)).sum

    def expected: Double = matching(column.share * rowsTold) + (physical - rowsTold)

    /** The share of each file's rows. */
    def shares: Array[Double] = {
      val byBounds = kept.map(f => if (isTold(f)) Some(shareOf(f)) else None)
      val sum = kept.indices.iterator.map(i => byBounds(i).fold(0.0)(rows(kept(i)) * _)).sum
      val factor = if (sum > 0) matching(sum) / sum else 1.0
      byBounds.map(_.fold(1.0)(share => math.min(1.0, share * factor)))
    }

    /** In the files that the statistics tell of, given those that the bounds of each make likely. */
    private def matching(byFiles: Double): Double =
      if (!column.ofTable) column.share * rowsTold
      else if (!isAncestor || !drops(column)) math.min(rowsTold, byFiles)
      else {
        val ofAll = column.kept.rows * math.max(1.0, all / math.max(1.0, column.whole.rows))
        // Files that the column's own conditions drop have no matching row, others have their share.
        lazy val elsewhere = column.share * math.max(
          0.0,
          math.max(all, column.whole.rows) - physical - dropped(column.conditions))
        math.min(
          rowsTold,
          if (isOneColumn || byFiles <= 0) ofAll
          else math.max(byFiles, ofAll * byFiles / (byFiles + elsewhere)))
      }

    private def isTold(file: Int): Boolean = summary.exists(_.hasStatistics(file))

    def shareOf(file: Int): Double =
      summary.filter(known => known.nulls(file) >= 0 && known.rows(file) > 0).fold(column.share) { known =>
        val (all, nulls, nans) = (known.rows(file), known.nulls(file), math.max(0L, known.nans(file)))
        val bounds =
          for (lo <- CatalystValue.lo(known, file); hi <- CatalystValue.hi(known, file)) yield (lo, hi)
        val ofValues = bounds.fold(column.share) { case (lo, hi) =>
          column.between(column.whole.axis.at(lo), column.whole.axis.at(hi))
        }
        (math.max(0L, all - nulls - nans) * ofValues + nulls * column.ofNulls + nans * column.ofNans) / all
      }
  }
}

private object MatchingRowCount {
  private val MostFiles = 8192 // beyond, the table alone tells
  private val MostOverlapping = 512
}
