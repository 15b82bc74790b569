package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}
import java.util.stream.IntStream

import scala.collection.mutable

import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.{Reason, Recoverable}
import org.metastore.spark.statistics.columns.{
  Bounds, ColumnSummary, FileGroupStatistics, FileSetStatistics, NoBounds
}
import org.metastore.spark.statistics.objects.Values

/** Files of a scan, by their places in it. */
private[spark] object FileSets {

  def all(length: Int): BitSet = {
    val files = new BitSet(length)
    files.set(0, length)
    files
  }

  /** Those of which a test is true. */
  def where(length: Int)(test: Int => Boolean): BitSet = {
    val words = new Array[Long]((length + 63) / 64)
    var file = 0
    while (file < length) {
      if (test(file)) words(file >> 6) |= 1L << file
      file += 1
    }
    BitSet.valueOf(words)
  }

  def both(some: BitSet, others: BitSet): BitSet = combine(some)(_.and(others))
  def either(some: BitSet, others: BitSet): BitSet = combine(some)(_.or(others))
  def without(some: BitSet, others: BitSet): BitSet = combine(some)(_.andNot(others))

  private def combine(files: BitSet)(change: BitSet => Unit): BitSet = {
    val made = files.clone().asInstanceOf[BitSet]
    change(made)
    made
  }
}

/** Finds files of which predicates are proven, many at once. The two questions have separate rules: neither negates the other. */
private[pruning] final class Evaluation private (
    val length: Int,
    column: ColumnReference => Either[Reason, ColumnSummary],
    allowance: EvaluationAllowance) {
  import FileSets.{both, either}

  private val summaries = mutable.Map.empty[ColumnReference, Either[Reason, ColumnSummary]]

  /** Over all files of a scan. */
  def this(files: FileSetStatistics, allowance: EvaluationAllowance) =
    this(files.files.length, use => files.column(use.key, use.dataType), allowance)

  /** Over groups of files, each as if it were one file. */
  def this(groups: FileGroupStatistics, allowance: EvaluationAllowance) =
    this(groups.length, use => groups.column(use.key, use.dataType), allowance)

  /** Over some of the files: the places in answers are those in `files`. */
  def among(files: Array[Int]): Evaluation =
    new Evaluation(files.length, summaryOf(_).map(_.at(files)), allowance)

  /** The column in all files; `Left` where nothing is known of it. */
  def summaryOf(use: ColumnReference): Either[Reason, ColumnSummary] =
    summaries.getOrElseUpdate(use, column(use))

  /** The files of which it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition): BitSet = {
    allowance.requireTime()
    excluded(predicate)
  }

  private def excluded(predicate: Condition): BitSet = predicate match {
    case And(left, right) => either(noRowMatches(left), noRowMatches(right))
    case Or(left, right) => both(noRowMatches(left), noRowMatches(right))
    case Never => FileSets.all(length)
    case Always | Unknown(_) => new BitSet
    case Evaluated(rules, _, _, _) => noRowMatches(rules)
    case NullTest(use, true) => where(use)((summary, i) => summary.nulls(i) == 0)
    case NullTest(use, false) if summaryOf(use).exists(_.boundsDecide) => new BitSet
    case NullTest(use, false) => where(use)(allNull)
    case NaNTest(use, true) => where(use)((summary, i) => summary.nans(i) == 0 || allNull(summary, i))
    case NaNTest(use, false) => where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case Member(term, set, inside) => whereMembers(term, set, inside) { (summary, proven) =>
        if (summary.boundsDecide) proven else where(summary)(i => proven.get(i) || allNull(summary, i))
      }
    case Related(left, relation, right) =>
      whereTerms(left, right)(new BoundsComparison(_, _).never(relation)) { (a, b, proven, i) =>
        if (relation == Relation.NullSafeEqual) nullSafeNever(a, b, proven, i)
        else proven || allNull(a, i) || allNull(b, i)
      }
  }

  /** The files of which it is proven that the predicate is true of every row. */
  def allRowsMatch(predicate: Condition): BitSet = {
    allowance.requireTime()
    matched(predicate)
  }

  private def matched(predicate: Condition): BitSet = predicate match {
    case And(left, right) => both(allRowsMatch(left), allRowsMatch(right))
    case Or(left, right) => either(allRowsMatch(left), allRowsMatch(right))
    case Always => FileSets.all(length)
    case Never | Unknown(_) => new BitSet
    case Evaluated(rules, _, _, _) => allRowsMatch(rules)
    case NullTest(use, true) => where(use)(allNull)
    case NullTest(use, false) => where(use)((summary, i) => summary.nulls(i) == 0)
    case NaNTest(use, true) => where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case NaNTest(use, false) => where(use)((summary, i) => summary.nans(i) == 0)
    case Member(term, set, inside) => whereMembers(term, set, !inside) { (summary, proven) =>
        where(summary)(i => proven.get(i) && summary.nulls(i) == 0)
      }
    case Related(left, relation, right) =>
      whereTerms(left, right)(new BoundsComparison(_, _).always(relation)) { (a, b, proven, i) =>
        proven && a.nulls(i) == 0 && b.nulls(i) == 0
      }
  }

  private def allNull(summary: ColumnSummary, i: Int): Boolean = summary.nulls(i) == summary.rows(i)

  /** `<=>` also holds where both are NULL, so values that never meet are not enough. */
  private def nullSafeNever(a: ColumnSummary, b: ColumnSummary, apart: Boolean, i: Int): Boolean =
    (apart && (a.nulls(i) == 0 || b.nulls(i) == 0)) ||
      (allNull(a, i) && b.nulls(i) == 0) || (a.nulls(i) == 0 && allNull(b, i))

  private def where(use: ColumnReference)(test: (ColumnSummary, Int) => Boolean): BitSet =
    summaryOf(use).fold(_ => new BitSet, summary => where(summary)(test(summary, _)))

  private def where(summary: ColumnSummary)(test: Int => Boolean): BitSet =
    FileSets.where(length)(i => summary.hasStatistics(i) && test(i))

  /** @param outside whether the values of a file are to lie outside of the set, or else in it */
  private def whereMembers(
      term: Term,
      set: ValueSet,
      outside: Boolean)(prove: (ColumnSummary, BitSet) => BitSet): BitSet =
    summaryOf(term.column).fold(
      _ => new BitSet,
      { summary =>
        val bounds = term.bounds(summary.bounds)
        prove(summary, if (outside) set.disjoint(bounds) else set.covers(bounds))
      })

  private def whereTerms(left: Term, right: Term)(prove: (Bounds, Bounds) => Int => Boolean)(
      test: (ColumnSummary, ColumnSummary, Boolean, Int) => Boolean): BitSet =
    (summaryOf(left.column), summaryOf(right.column)) match {
      case (Right(a), Right(b)) =>
        val proven = prove(left.bounds(a.bounds), right.bounds(b.bounds))
        FileSets.where(length)(i => a.hasStatistics(i) && b.hasStatistics(i) && test(a, b, proven(i), i))
      case _ => new BitSet
    }
}

/** Compares the bounds of two terms of a row. */
private final class BoundsComparison(left: Bounds, right: Bounds) {
  private val (leftLo, leftHi, rightLo, rightHi) = (left.los, left.his, right.los, right.his)

  /** Whether no pair of values within the bounds is so related. */
  def never(relation: Relation): Int => Boolean = relation match {
    case Relation.Less => i => isKnown(right, left, i) && rightHi.compare(i, leftLo, i) <= 0
    case Relation.LessOrEqual => i => isKnown(right, left, i) && rightHi.compare(i, leftLo, i) < 0
    case Relation.Equal | Relation.NullSafeEqual => disjoint
    case Relation.NotEqual => same
  }

  /** Whether all pairs of values within the bounds are so related. */
  def always(relation: Relation): Int => Boolean = relation match {
    case Relation.Less => i => isKnown(left, right, i) && leftHi.compare(i, rightLo, i) < 0
    case Relation.LessOrEqual => i => isKnown(left, right, i) && leftHi.compare(i, rightLo, i) <= 0
    case Relation.Equal | Relation.NullSafeEqual => same
    case Relation.NotEqual => disjoint
  }

  private val disjoint: Int => Boolean = i =>
    isKnown(left, right, i) && leftHi.compare(i, rightLo, i) < 0 || isKnown(
      right,
      left,
      i) && rightHi.compare(i, leftLo, i) < 0

  /** Both are the same single value. */
  private val same: Int => Boolean = i =>
    ValueSet.exact(left, i) && ValueSet.exact(
      right,
      i) && leftHi.compare(i, rightLo, i) <= 0 && rightHi.compare(i, leftLo, i) <= 0

  private def isKnown(above: Bounds, below: Bounds, i: Int): Boolean = above.hasHi(i) && below.hasLo(i)
}

/** Asks single values where bounds leave it open: lists of all values and bloom filters are read for these files alone. */
private[pruning] final class ValueLookups(
    files: FileSetStatistics,
    bounds: Evaluation,
    allowance: EvaluationAllowance) {
  import FileSets.{either, without}
  import ValueLookups._

  private var filesEvaluated = 0

  /** Of how many files all values were put through an expression. */
  def evaluations: Int = filesEvaluated

  /** Those of some files of which it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition, among: BitSet): BitSet = predicate match {
    case And(left, right) =>
      val proven = noRowMatches(left, among)
      either(proven, noRowMatches(right, without(among, proven)))
    case Or(left, right) =>
      val (first, second) = if (asksForValues(left)) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, among))
    case evaluated @ Evaluated(rules, use, _, _) =>
      val proven = noRowMatches(rules, among)
      val open = without(without(among, proven), matchedByBounds(rules, among))
      either(
        proven,
        byExpression(use, trialOf(evaluated), open)((summary, i, trial, list) =>
          !mayHold(summary, i, trial, list)))
    case Member(term, set, inside) if asksForValues(predicate) =>
      val proven = excludedByBounds(predicate, among)
      val open = without(among, proven)
      either(
        proven,
        byPoints(term.column, set.points.get, lacks = inside)(
          (bounds, i) => isOpen(bounds, set.points.get, inside, i),
          open))
    case other => excludedByBounds(other, among)
  }

  /** Those of some files of which it is proven that the predicate is true of every row. */
  def allRowsMatch(predicate: Condition, among: BitSet): BitSet = predicate match {
    case And(left, right) => allRowsMatch(right, allRowsMatch(left, among))
    case Or(left, right) =>
      val proven = allRowsMatch(left, among)
      either(proven, allRowsMatch(right, without(among, proven)))
    case evaluated @ Evaluated(rules, use, _, _) =>
      val proven = allRowsMatch(rules, among)
      val open = without(without(among, proven), excludedByBounds(rules, among))
      either(proven, byExpression(use, trialOf(evaluated), open)(mustHold))
    case Member(term, set, inside) if asksForValues(predicate) =>
      val proven = matchedByBounds(predicate, among)
      val open = without(without(among, proven), excludedByBounds(predicate, among))
      either(
        proven,
        byPoints(term.column, set.points.get, lacks = !inside)(
          (_, _) => true,
          withoutNulls(term.column, open)))
    case other => matchedByBounds(other, among)
  }

  private def excludedByBounds(predicate: Condition, among: BitSet): BitSet =
    evaluateAmong(among)(_.noRowMatches(predicate))

  private def matchedByBounds(predicate: Condition, among: BitSet): BitSet =
    evaluateAmong(among)(_.allRowsMatch(predicate))

  private def withoutNulls(use: ColumnReference, among: BitSet): BitSet =
    evaluateAmong(among)(_.allRowsMatch(NullTest(use, isNull = false)))

  private def evaluateAmong(among: BitSet)(ask: Evaluation => BitSet): BitSet = {
    val places = among.stream.toArray
    if (places.isEmpty) among else setOf(ask(bounds.among(places)).stream.map(places(_)))
  }

  private def trialOf(asked: Evaluated): ValueTrial =
    new ValueTrial(new ValuePredicate(asked.condition, asked.leaf), asked.column, allowance)

  /** Files all of whose values are listed, and the expression proves it of them; an error of it is the query's to raise. */
  private def byExpression(use: ColumnReference, trial: ValueTrial, among: BitSet)(
      proves: (ColumnSummary, Int, ValueTrial, Values) => Boolean): BitSet =
    bounds.summaryOf(use).fold(
      _ => new BitSet,
      { summary =>
        val open = among.stream.filter(summary.hasStatistics(_)).toArray
        if (open.isEmpty || allowance.isEmpty) new BitSet
        else {
          val values = files.values(use.key, use.dataType, open, filters = false, allowance.worthReading)
          def listed(file: Int) =
            if (summary.nulls(file) == summary.rows(file)) Some(Values.none) else values.listed(file)
          def isProven(file: Int, list: Values) = {
            filesEvaluated += 1
            try proves(summary, file, trial, list)
            catch { case Recoverable(_) => false }
          }
          setOf(inTime(open).filter(i => listed(i).exists(isProven(i, _))))
        }
      })

  /** Whether the expression may be true of a row. */
  private def mayHold(summary: ColumnSummary, file: Int, trial: ValueTrial, list: Values): Boolean =
    summary.nulls(file) != 0 && trial.holdsForNull || mayHaveNaN(
      summary,
      file) && trial.holdsForNaN || trial.holdsForSome(list)

  /** Whether the expression is true of every row. */
  private def mustHold(summary: ColumnSummary, file: Int, trial: ValueTrial, list: Values): Boolean =
    (summary.nulls(file) == 0 || trial.holdsForNull) && (!mayHaveNaN(
      summary,
      file) || trial.holdsForNaN) && trial.holdsForAll(list)

  private def mayHaveNaN(summary: ColumnSummary, file: Int): Boolean = summary.dataType match {
    case FloatType | DoubleType => summary.nans(file) != 0
    case _ => false
  }

  /** Files none of whose values is one of the points (`lacks`), or all are. */
  private def byPoints(use: ColumnReference, points: Values, lacks: Boolean)(
      isOpen: (Bounds, Int) => Boolean,
      among: BitSet): BitSet =
    bounds.summaryOf(use).fold(
      _ => new BitSet,
      { summary =>
        val open = among.stream.filter(i => summary.hasStatistics(i) && isOpen(summary.bounds, i)).toArray
        if (open.isEmpty) new BitSet
        else {
          val values = files.values(use.key, use.dataType, open, filters = lacks)
          val decides = if (lacks) values.lack(points) else values.within(points)
          setOf(inTime(open).filter(decides(_)))
        }
      })

  /** Files one after the other: each may have to be asked for many values. */
  private def inTime(files: Array[Int]): IntStream = Arrays.stream(files).peek(_ => allowance.requireTime())
}

private[pruning] object ValueLookups {

  /** Whether single values decide some part of it. */
  def asksForValues(predicate: Condition): Boolean = predicate match {
    case And(left, right) => asksForValues(left) || asksForValues(right)
    case Or(left, right) => asksForValues(left) || asksForValues(right)
    case Member(term, set, _) => term.isColumn && set.points.isDefined
    case other => other.isInstanceOf[Evaluated]
  }

  /** An exact bound is a value of the file: where it is one that is asked for, or one that is not, all is said already. */
  private def isOpen(bounds: Bounds, points: Values, inside: Boolean, i: Int): Boolean =
    bounds != NoBounds && !(bounds.loExact(i) && bounds.los.isIn(points, i) == inside) &&
      !(bounds.hiExact(i) && bounds.his.isIn(points, i) == inside)

  private def setOf(files: IntStream): BitSet = {
    val set = new BitSet
    files.forEach(set.set(_))
    set
  }
}
