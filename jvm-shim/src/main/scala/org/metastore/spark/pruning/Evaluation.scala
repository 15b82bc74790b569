package org.metastore.spark.pruning

import scala.collection.mutable

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary, FileGroupStatistics, FileSetStatistics, NoBounds}
import org.metastore.spark.statistics.objects.Values

/** Evaluates predicates over many files at once. The two questions have separate rules: neither negates the other. */
private[pruning] final class Evaluation private (val length: Int, column: ColumnReference => Either[Reason, ColumnSummary]) {
  private val summaries = mutable.Map.empty[ColumnReference, Either[Reason, ColumnSummary]]
  private lazy val none = new Array[Boolean](length)

  /** Over all files of a scan. */
  def this(files: FileSetStatistics) = this(files.files.length, use => files.column(use.key, use.dataType))

  /** Over groups of files, each as if it were one file. */
  def this(groups: FileGroupStatistics) = this(groups.length, use => groups.column(use.key, use.dataType))

  /** Over some of the files: answers are aligned with `files`. */
  def among(files: Array[Int]): Evaluation = new Evaluation(files.length, summaryOf(_).map(_.at(files)))

  /** The column in all files; `Left` where nothing is known of it. */
  def summaryOf(use: ColumnReference): Either[Reason, ColumnSummary] = summaries.getOrElseUpdate(use, column(use))

  /** Whether an answer is the one that proves nothing of any file. */
  def isNone(proven: Array[Boolean]): Boolean = proven eq none

  /** For each file, whether it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition): Array[Boolean] = predicate match {
    case And(left, right) => either(noRowMatches(left), noRowMatches(right))
    case Or(left, right) => both(noRowMatches(left), noRowMatches(right))
    case Never => Array.fill(length)(true)
    case Always | Unknown(_) => none
    case NullTest(use, true) => where(use)((summary, i) => summary.nulls(i) == 0)
    case NullTest(use, false) if summaryOf(use).exists(_.boundsDecide) => none
    case NullTest(use, false) => where(use)(allNull)
    case NaNTest(use, true) => where(use)((summary, i) => summary.nans(i) == 0 || allNull(summary, i))
    case NaNTest(use, false) => where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case member: Member => noMember(member)
    case Related(left, relation, right) => compareTerms(left, right)(new BoundsComparison(_, _).never(relation)) { (a, b, proven, i) =>
      if (relation == Relation.NullSafeEqual) nullSafeNever(a, b, proven, i)
      else proven || allNull(a, i) || allNull(b, i)
    }
  }

  private def noMember(member: Member): Array[Boolean] = summaryOf(member.term.column).fold(_ => none, { summary =>
    val bounds = member.term.bounds(summary.bounds)
    val proven = if (member.inside) member.set.disjoint(bounds) else member.set.covers(bounds)
    if (!summary.boundsDecide) {
      var i = 0
      while (i < length) {
        proven(i) = summary.hasStatistics(i) && (proven(i) || allNull(summary, i))
        i += 1
      }
    }
    proven
  })

  /** For each file, whether it is proven that the predicate is true of every row. */
  def allRowsMatch(predicate: Condition): Array[Boolean] = predicate match {
    case And(left, right) => both(allRowsMatch(left), allRowsMatch(right))
    case Or(left, right) => either(allRowsMatch(left), allRowsMatch(right))
    case Always => Array.fill(length)(true)
    case Never | Unknown(_) => none
    case NullTest(use, true) => where(use)(allNull)
    case NullTest(use, false) => where(use)((summary, i) => summary.nulls(i) == 0)
    case NaNTest(use, true) => where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case NaNTest(use, false) => where(use)((summary, i) => summary.nans(i) == 0)
    case Member(term, set, inside) => summaryOf(term.column).fold(_ => none, { summary =>
      val bounds = term.bounds(summary.bounds)
      val proven = if (inside) set.covers(bounds) else set.disjoint(bounds)
      each(i => summary.hasStatistics(i) && proven(i) && summary.nulls(i) == 0)
    })
    case Related(left, relation, right) => compareTerms(left, right)(new BoundsComparison(_, _).always(relation)) { (a, b, proven, i) =>
      proven && a.nulls(i) == 0 && b.nulls(i) == 0
    }
  }

  private def allNull(summary: ColumnSummary, i: Int): Boolean = summary.nulls(i) == summary.rows(i)

  /** `<=>` also holds where both are NULL, so values that never meet are not enough. */
  private def nullSafeNever(a: ColumnSummary, b: ColumnSummary, apart: Boolean, i: Int): Boolean =
    (apart && (a.nulls(i) == 0 || b.nulls(i) == 0)) ||
      (allNull(a, i) && b.nulls(i) == 0) || (a.nulls(i) == 0 && allNull(b, i))

  private def where(use: ColumnReference)(test: (ColumnSummary, Int) => Boolean): Array[Boolean] =
    summaryOf(use).fold(_ => none, summary => each(i => summary.hasStatistics(i) && test(summary, i)))

  private def compareTerms(left: Term, right: Term)(prove: (Bounds, Bounds) => Int => Boolean)(
      test: (ColumnSummary, ColumnSummary, Boolean, Int) => Boolean): Array[Boolean] =
    (summaryOf(left.column), summaryOf(right.column)) match {
      case (Right(a), Right(b)) =>
        val proven = prove(left.bounds(a.bounds), right.bounds(b.bounds))
        each(i => a.hasStatistics(i) && b.hasStatistics(i) && test(a, b, proven(i), i))
      case _ => none
    }

  private def each(test: Int => Boolean): Array[Boolean] = {
    val out = new Array[Boolean](length)
    var i = 0
    while (i < length) {
      out(i) = test(i)
      i += 1
    }
    out
  }

  private def both(a: Array[Boolean], b: Array[Boolean]): Array[Boolean] =
    if (isNone(a) || isNone(b)) none
    else {
      val out = new Array[Boolean](length)
      var i = 0
      while (i < length) {
        out(i) = a(i) & b(i)
        i += 1
      }
      out
    }

  private def either(a: Array[Boolean], b: Array[Boolean]): Array[Boolean] =
    if (isNone(a)) b
    else if (isNone(b)) a
    else {
      val out = new Array[Boolean](length)
      var i = 0
      while (i < length) {
        out(i) = a(i) | b(i)
        i += 1
      }
      out
    }
}

private[pruning] object Evaluation {

  /** Those of some files for which something is proven. */
  def select(files: Array[Int], proven: Array[Boolean]): Array[Int] = {
    val out = new Array[Int](files.length)
    var (found, i) = (0, 0)
    while (i < files.length) {
      if (proven(i)) {
        out(found) = files(i)
        found += 1
      }
      i += 1
    }
    java.util.Arrays.copyOf(out, found)
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
    isKnown(left, right, i) && leftHi.compare(i, rightLo, i) < 0 || isKnown(right, left, i) && rightHi.compare(i, leftLo, i) < 0

  /** Both are the same single value. */
  private val same: Int => Boolean = i =>
    exact(left, i) && exact(right, i) && leftLo.compare(i, leftHi, i) == 0 && rightLo.compare(i, rightHi, i) == 0 &&
      leftLo.compare(i, rightLo, i) == 0

  private def isKnown(above: Bounds, below: Bounds, i: Int): Boolean = above.hasHi(i) && below.hasLo(i)

  private def exact(bounds: Bounds, i: Int): Boolean =
    bounds.hasLo(i) && bounds.hasHi(i) && bounds.loExact(i) && bounds.hiExact(i)
}

/**
 * What bounds leave open, lists of all values and bloom filters may decide: whether a file holds one of some single values,
 * and whether it holds only these. They are read for the files alone that nothing else decides.
 */
private[pruning] final class ValueLookups(files: FileSetStatistics, bounds: Evaluation) {
  import ValueLookups._

  /** Those of some files of which it is proven that no row makes the predicate true. */
  def noRowMatches(predicate: Condition, among: Array[Int]): Array[Int] = predicate match {
    case And(left, right) =>
      val proven = noRowMatches(left, among)
      proven ++ noRowMatches(right, less(among, proven))
    case Or(left, right) =>
      val (first, second) = if (hasPoints(left)) (right, left) else (left, right)
      noRowMatches(second, noRowMatches(first, among))
    case Member(term, set, inside) if hasPoints(predicate) =>
      val proven = excludeByBounds(predicate, among)
      bounds.summaryOf(term.column).fold(_ => proven, { summary =>
        proven ++ excludeByValues(term.column, summary, set.points.get, inside, less(among, proven))
      })
    case other => excludeByBounds(other, among)
  }

  private def excludeByBounds(predicate: Condition, among: Array[Int]): Array[Int] =
    if (among.isEmpty) among else Evaluation.select(among, bounds.among(among).noRowMatches(predicate))

  private def excludeByValues(use: ColumnReference, summary: ColumnSummary, points: Values, inside: Boolean, among: Array[Int]): Array[Int] = {
    val open = among.filter(i => summary.hasStatistics(i) && isOpen(summary.bounds, points, inside, i))
    if (open.isEmpty) open
    else {
      val values = files.values(use.key, use.dataType, open, filters = inside)
      open.filter(if (inside) values.lack(points) else values.within(points))
    }
  }
}

private[pruning] object ValueLookups {

  /** Whether single values decide some part of it. */
  def hasPoints(predicate: Condition): Boolean = predicate match {
    case And(left, right) => hasPoints(left) || hasPoints(right)
    case Or(left, right) => hasPoints(left) || hasPoints(right)
    case Member(term, set, _) => term.isColumn && set.points.isDefined
    case _ => false
  }

  /** An exact bound is a value of the file: where it is one that is asked for, or one that is not, all is said already. */
  private def isOpen(bounds: Bounds, points: Values, inside: Boolean, i: Int): Boolean =
    bounds != NoBounds && !(bounds.hasLo(i) && bounds.loExact(i) && bounds.los.isIn(points, i) == inside) &&
      !(bounds.hasHi(i) && bounds.hiExact(i) && bounds.his.isIn(points, i) == inside)

  private def less(files: Array[Int], proven: Array[Int]): Array[Int] =
    if (proven.isEmpty) files
    else {
      val done = proven.toSet
      files.filterNot(done)
    }
}
