package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary, FileGroupStatistics, FileSetStatistics}

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
    case And(left, right) =>
      either(noRowMatches(left), noRowMatches(right))
    case Or(left, right) =>
      both(noRowMatches(left), noRowMatches(right))
    case Never => FileSets.all(length)
    case Always | Unknown(_) => new BitSet
    case Evaluated(rules, _, _, _) =>
      noRowMatches(rules)
    case NullTest(use, true) =>
      where(use)((summary, i) => summary.nulls(i) == 0)
    case NullTest(use, false) if summaryOf(use).exists(_.boundsDecide) => new BitSet
    case NullTest(use, false) =>
      where(use)(allNull)
    case NaNTest(use, true) =>
      where(use)((summary, i) => summary.nans(i) == 0 || allNull(summary, i))
    case NaNTest(use, false) =>
      where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case member: Member =>
      noMember(member)
    case related: Related =>
      neverRelated(related)
  }

  private def noMember(member: Member): BitSet = whereMembers(member) { (summary, bounds) =>
    val proven = if (member.inside) member.set.disjoint(bounds) else member.set.covers(bounds)
    if (summary.boundsDecide) proven
    else where(summary)(i => proven.get(i) || allNull(summary, i))
  }

  private def neverRelated(related: Related): BitSet = whereTerms(related) { (a, b, bounds) =>
    val never = bounds.never(related.relation)
    related.relation match {
      case Relation.NullSafeEqual =>
        i => nullSafeNever(a, b, never(i), i)
      case _ =>
        i => never(i) || allNull(a, i) || allNull(b, i)
    }
  }

  /** The files of which it is proven that the predicate is true of every row. */
  def allRowsMatch(predicate: Condition): BitSet = {
    allowance.requireTime()
    matched(predicate)
  }

  private def matched(predicate: Condition): BitSet = predicate match {
    case And(left, right) =>
      both(allRowsMatch(left), allRowsMatch(right))
    case Or(left, right) =>
      either(allRowsMatch(left), allRowsMatch(right))
    case Always => FileSets.all(length)
    case Never | Unknown(_) => new BitSet
    case Evaluated(rules, _, _, _) =>
      allRowsMatch(rules)
    case NullTest(use, true) =>
      where(use)(allNull)
    case NullTest(use, false) =>
      where(use)((summary, i) => summary.nulls(i) == 0)
    case NaNTest(use, true) =>
      where(use)((summary, i) => summary.nans(i) == summary.rows(i))
    case NaNTest(use, false) =>
      where(use)((summary, i) => summary.nans(i) == 0)
    case member: Member =>
      allMembers(member)
    case related: Related =>
      alwaysRelated(related)
  }

  private def allMembers(member: Member): BitSet = whereMembers(member) { (summary, bounds) =>
    val proven = if (member.inside) member.set.covers(bounds) else member.set.disjoint(bounds)
    where(summary)(i => proven.get(i) && summary.nulls(i) == 0)
  }

  private def alwaysRelated(related: Related): BitSet = whereTerms(related) { (a, b, bounds) =>
    val always = bounds.always(related.relation)
    i => always(i) && a.nulls(i) == 0 && b.nulls(i) == 0
  }

  private def allNull(summary: ColumnSummary, i: Int): Boolean = summary.nulls(i) == summary.rows(i)

  /** `<=>` also holds where both are NULL, so values that never meet are not enough. */
  private def nullSafeNever(a: ColumnSummary, b: ColumnSummary, apart: Boolean, i: Int): Boolean = {
    val aWithoutNull = a.nulls(i) == 0
    val bWithoutNull = b.nulls(i) == 0
    if (apart && (aWithoutNull || bWithoutNull)) true
    else if (allNull(a, i) && bWithoutNull) true
    else aWithoutNull && allNull(b, i)
  }

  private def where(use: ColumnReference)(test: (ColumnSummary, Int) => Boolean): BitSet =
    summaryOf(use) match {
      case Left(_) => new BitSet
      case Right(summary) =>
        where(summary)(test(summary, _))
    }

  private def where(summary: ColumnSummary)(test: Int => Boolean): BitSet =
    FileSets.where(length)(i => summary.hasStatistics(i) && test(i))

  private def whereMembers(member: Member)(prove: (ColumnSummary, Bounds) => BitSet): BitSet =
    summaryOf(member.term.column) match {
      case Left(_) => new BitSet
      case Right(summary) =>
        prove(summary, member.term.bounds(summary.bounds))
    }

  private def whereTerms(related: Related)(
      prove: (ColumnSummary, ColumnSummary, BoundsComparison) => Int => Boolean): BitSet =
    (summaryOf(related.left.column), summaryOf(related.right.column)) match {
      case (Right(a), Right(b)) =>
        val bounds = new BoundsComparison(related.left.bounds(a.bounds), related.right.bounds(b.bounds))
        val test = prove(a, b, bounds)
        FileSets.where(length)(i => a.hasStatistics(i) && b.hasStatistics(i) && test(i))
      case _ => new BitSet
    }
}

/** Compares the bounds of two terms of a row. */
private final class BoundsComparison(left: Bounds, right: Bounds) {
  private val (leftLo, leftHi) = (left.los, left.his)
  private val (rightLo, rightHi) = (right.los, right.his)

  /** Whether no pair of values within the bounds is so related. */
  def never(relation: Relation): Int => Boolean = relation match {
    case Relation.Less => isNotBelow
    case Relation.LessOrEqual => isAbove
    case Relation.Equal | Relation.NullSafeEqual => isApart
    case Relation.NotEqual => isSame
  }

  /** Whether all pairs of values within the bounds are so related. */
  def always(relation: Relation): Int => Boolean = relation match {
    case Relation.Less => isBelow
    case Relation.LessOrEqual => isNotAbove
    case Relation.Equal | Relation.NullSafeEqual => isSame
    case Relation.NotEqual => isApart
  }

  private def isBelow(i: Int): Boolean =
    left.hasHi(i) && right.hasLo(i) && leftHi.compare(i, rightLo, i) < 0

  private def isNotAbove(i: Int): Boolean =
    left.hasHi(i) && right.hasLo(i) && leftHi.compare(i, rightLo, i) <= 0

  private def isAbove(i: Int): Boolean =
    right.hasHi(i) && left.hasLo(i) && rightHi.compare(i, leftLo, i) < 0

  private def isNotBelow(i: Int): Boolean =
    right.hasHi(i) && left.hasLo(i) && rightHi.compare(i, leftLo, i) <= 0

  private def isApart(i: Int): Boolean = isBelow(i) || isAbove(i)

  /** Whether both are the same single value. */
  private def isSame(i: Int): Boolean = {
    val areExact = ValueSet.exact(left, i) && ValueSet.exact(right, i)
    areExact && leftHi.compare(i, rightLo, i) <= 0 && rightHi.compare(i, leftLo, i) <= 0
  }
}
