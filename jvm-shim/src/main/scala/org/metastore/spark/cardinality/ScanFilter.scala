package org.metastore.spark.cardinality

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Filter, LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.FilterEstimation
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{ColumnResolver, ColumnLookup}
import org.metastore.spark.store.ColumnHistogram

/** A column of the statistics as a filter names it. */
private[cardinality] final case class ColumnKey(key: String, dataType: DataType)(val leaf: Expression)

/**
 * The values of a column before and after the conditions on it alone.
 *
 * @param ofTable whether they are those of the whole table, not of the files that are read
 */
private[cardinality] final case class ColumnConditions(
    asked: ColumnKey, conditions: Seq[Expression], whole: ColumnHistogram, kept: ColumnHistogram, ofTable: Boolean) {

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

/** The share of rows that satisfies a condition, of which its columns tell more in some files than in others. */
private[cardinality] sealed trait Selectivity {

  /** The conditions on one column that it is made of. */
  def columns: Seq[ColumnConditions]

  /** @param among the share that the conditions on one column have, say in a file */
  def of(among: ColumnConditions => Double): Double
}

private[cardinality] final case class SelectivityOfColumn(column: ColumnConditions) extends Selectivity {
  override def columns: Seq[ColumnConditions] = Seq(column)
  override def of(among: ColumnConditions => Double): Double = among(column)
}

private[cardinality] final case class ConstantSelectivity(share: Double) extends Selectivity {
  override def columns: Seq[ColumnConditions] = Nil
  override def of(among: ColumnConditions => Double): Double = share
}

private[cardinality] final case class JointSelectivity(left: Selectivity, right: Selectivity)(joined: (Double, Double) => Double) extends Selectivity {
  override def columns: Seq[ColumnConditions] = left.columns ++ right.columns
  override def of(among: ColumnConditions => Double): Double = joined(left.of(among), right.of(among))
}

/**
 * What a scan's filter leaves, from the values of its columns: conditions on one column are evaluated on their values, those on
 * several columns take them to be independent.
 *
 * @param conjuncts  what every row of the scan must satisfy
 * @param histograms finds how columns' values are spread, by key and type
 */
private[cardinality] final class FilterSelectivity(
    conjuncts: Seq[Expression], resolver: ColumnResolver, histograms: Seq[ColumnKey] => Map[ColumnKey, (ColumnHistogram, Boolean)]) {
  import FilterSelectivity._

  private val usable = conjuncts.filter(ColumnPredicate.canEvaluate)
    .flatMap(c => columnsOf(c).map(c -> _))

  private val known: Map[ColumnKey, (ColumnHistogram, Boolean)] =
    try histograms(usable.flatMap(_._2).distinct) catch { case NonFatal(_) => Map.empty }

  /** Conditions on one column, together. */
  val columns: Seq[ColumnConditions] = usable.collect { case (condition, Seq(asked)) => asked -> condition }
    .groupBy(_._1).toSeq.flatMap { case (asked, of) => restricted(asked, of.map(_._2)) }

  private val joint: Seq[(Expression, Selectivity)] = usable.collect {
    case (condition, asked) if asked.size > 1 && leavesOf(condition).size <= MostLeaves => shareOf(condition, asked).map(condition -> _)
  }.flatten

  /** What each of the conditions on several columns lets through. */
  val jointConditions: Seq[Selectivity] = joint.map(_._2)

  /** The share of all rows that satisfies every condition. */
  def share: Double = columns.map(_.share).product * jointConditions.map(_.of(_.share)).product

  /** The conjuncts whose effect is known. */
  val estimatedConjuncts: Seq[Expression] = usable.collect {
    case (condition, Seq(asked)) if columns.exists(_.asked == asked) => condition
  } ++ joint.map(_._1)

  /** The columns that Spark estimates the filter by, by their keys. */
  val columnKeys: Set[String] = usable.flatMap(_._2).map(_.key).toSet

  /** Whether nothing but the counts of all values was needed. */
  def isExact: Boolean = columns.size == 1 && joint.isEmpty && estimatedConjuncts.size == conjuncts.size && columns.head.whole.isComplete

  private def columnsOf(condition: Expression): Option[Seq[ColumnKey]] = {
    val leaves = leavesOf(condition)
    val found = leaves.flatMap { case (leaf, root, path) =>
      if (resolver.isMetadata(root)) None else resolver.key(root, path).map(ColumnKey(_, leaf.dataType)(leaf))
    }
    if (found.size < leaves.size || found.isEmpty) None else Some(found.distinct)
  }

  private def restricted(asked: ColumnKey, conditions: Seq[Expression]): Option[ColumnConditions] =
    known.get(asked).filter(_._1.rows > 0).flatMap { case (whole, ofTable) =>
      try {
        val kept = new ColumnPredicate(conditions.reduce(And(_, _)), asked.leaf).of(whole)
        Some(ColumnConditions(asked, conditions, whole, kept, ofTable))
      }
      catch { case EvaluationFailure(_) => None } // what fails on a value, as under ANSI, is not known
    }

  /** The values of a column that the conditions on it alone leave, where there are any. */
  private def remaining(asked: ColumnKey): Option[(ColumnHistogram, Boolean)] =
    columns.find(_.asked == asked).map(one => (one.kept, one.ofTable)).orElse(known.get(asked))

  /** The share of rows that satisfies a condition on several columns. */
  private def shareOf(condition: Expression, asked: Seq[ColumnKey]): Option[Selectivity] = asked match {
    case Seq(one) => remaining(one).filter(_._1.rows > 0).flatMap { case (column, ofTable) =>
      try Some(SelectivityOfColumn(ColumnConditions(one, Seq(condition), column, new ColumnPredicate(condition, one.leaf).of(column), ofTable)))
      catch { case EvaluationFailure(_) => None }
    }
    case _ => condition match {
      case And(left, right) => both(left, right)(_ * _)
      case Or(left, right) => both(left, right)((a, b) => a + b - a * b)
      case EqualTo(left, right) if asked.size == 2 && isLeaf(left) && isLeaf(right) =>
        val counts = asked.flatMap(remaining(_)).map(_._1.distinct)
        if (counts.size == 2) Some(ConstantSelectivity(1 / math.max(1.0, counts.max))) else None
      case other => sampled(other, asked).map(ConstantSelectivity(_))
    }
  }

  private def both(left: Expression, right: Expression)(joined: (Double, Double) => Double): Option[Selectivity] =
    for (l <- columnsOf(left); r <- columnsOf(right); a <- shareOf(left, l); b <- shareOf(right, r)) yield JointSelectivity(a, b)(joined)

  /** By rows that are put together of values drawn independently, the same ones each time. */
  private def sampled(condition: Expression, asked: Seq[ColumnKey]): Option[Double] = {
    val whole = asked.flatMap(remaining(_)).map(_._1)
    if (whole.size < asked.size || whole.exists(_.buckets.isEmpty)) None
    else try {
      val bound = condition.transformDown {
        case one if asked.exists(_.leaf.semanticEquals(one)) =>
          BoundReference(asked.indexWhere(_.leaf.semanticEquals(one)), one.dataType, nullable = true)
      }
      val row = new GenericInternalRow(asked.size)
      val held = (1 to Samples).count { i =>
        whole.indices.foreach(c => row.update(c, whole(c).sample((i * Steps(c % Steps.size)) % 1)))
        bound.eval(row) == true
      }
      val filled = whole.map(column => column.values / math.max(1.0, column.rows)).product
      Some(math.max(held, 0.5) / Samples * filled)
    } catch { case EvaluationFailure(_) => None }
  }
}

/** What evaluating a condition may raise, errors of its own stack and classes too, without harm to who plans a query. */
private[cardinality] object EvaluationFailure {
  def unapply(e: Throwable): Option[Throwable] = e match {
    case _: StackOverflowError | _: LinkageError => Some(e)
    case other => NonFatal.unapply(other)
  }
}

private[cardinality] object FilterSelectivity {
  private val Samples = 2000
  private val MostLeaves = 64 // of one conjunct: each is evaluated on the values of its column
  private val Steps = Seq(2, 3, 5, 7, 11, 13).map(prime => math.sqrt(prime.toDouble))

  private def isLeaf(expression: Expression): Boolean = leafOf(expression).isDefined

  private def leavesOf(expression: Expression): Seq[(Expression, Attribute, Seq[String])] = leafOf(expression) match {
    case Some((root, path)) => Seq((expression, root, path))
    case None => expression.children.flatMap(leavesOf)
  }

  private def leafOf(expression: Expression): Option[(Attribute, Seq[String])] = ColumnLookup.ColumnPath.unapply(expression)
}

/**
 * The filter of a scan, not yet estimated.
 *
 * @param histograms how columns' values are spread over the table, by key and type
 * @param output     what the scan gives
 */
final class FilterRequest(
    conjuncts: Seq[Expression], resolver: ColumnResolver,
    private[cardinality] val histograms: Seq[(String, DataType)] => Map[(String, DataType), ColumnHistogram],
    output: Seq[Attribute], joins: JoinKeys) {

  /** Distinct counts that make estimates of joins right, by key of the column. */
  private[cardinality] lazy val joinDistinctCounts: Map[String, Double] =
    output.flatMap(column => joins.of(column.exprId).flatMap(count => resolver.key(column, Nil).map(_ -> count))).toMap

  /** The share of the rows that semi joins and anti joins leave: Spark takes their rows to be all those of the scan. */
  private[cardinality] lazy val leftByJoins: Double = output.map(column => joins.leftOf(column.exprId)).product

  def isEmpty: Boolean = conjuncts.isEmpty

  /** The places of some of the conjuncts among all. */
  private[cardinality] def places(some: Seq[Expression]): Set[Int] =
    conjuncts.indices.filter(i => some.exists(_ eq conjuncts(i))).toSet

  private[cardinality] def on(histograms: Seq[ColumnKey] => Map[ColumnKey, (ColumnHistogram, Boolean)]): FilterSelectivity =
    new FilterSelectivity(conjuncts, resolver, histograms)

  /** The share of rows that some of the conjuncts let through, as Spark estimates it. */
  private[cardinality] def sparkShare(some: Seq[Expression], stat: (String, DataType) => Option[ColumnStat]): Double = {
    val output = some.flatMap(_.references).distinct
    val stats = output.flatMap(a => resolver.key(a, Nil).flatMap(stat(_, a.dataType)).map(a -> _))
    SparkSelectivity.share(some, Statistics(sizeInBytes = 1, Some(SparkSelectivity.Rows), AttributeMap(stats)), output)
  }
}

/** What Spark's own estimator makes of a filter, given numbers of the columns. */
private[cardinality] object SparkSelectivity {
  val Rows: BigInt = BigInt(10).pow(15) // so many that rounding them up changes no share

  /** The share of rows that it lets through. */
  def share(conjuncts: Seq[Expression], stats: Statistics, output: Seq[Attribute]): Double =
    (for {
      condition <- conjuncts.reduceOption(And(_, _))
      before <- stats.rowCount
      after <- FilterEstimation(Filter(condition, RelationWithStatistics(output, stats))).estimate.flatMap(_.rowCount)
      if before > 0
    } yield (BigDecimal(after) / BigDecimal(before)).toDouble).getOrElse(1.0)

  private final case class RelationWithStatistics(output: Seq[Attribute], known: Statistics) extends LeafNode {
    override def computeStats(): Statistics = known
  }
}
