package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/**
 * A condition in negation normal form: the compiler of conjuncts pushes NOT into the leaves. Two questions
 * about it have separate rules, and neither is the negation of the other.
 */
private[pruning] sealed trait Condition {

  /** The files in which, as is proven, no row makes the condition true. */
  final def noRowMatches(files: Evaluation): BitSet = {
    files.requireTime()
    excluded(files)
  }

  /** The files in which, as is proven, every row makes the condition true. */
  final def allRowsMatch(files: Evaluation): BitSet = {
    files.requireTime()
    matched(files)
  }

  protected def excluded(files: Evaluation): BitSet
  protected def matched(files: Evaluation): BitSet

  /** The parts that AND joins, or the condition itself. */
  def conjuncts: Seq[Condition] = Seq(this)

  /** The part of the condition that bounds can decide. */
  def rules: Condition = this

  /** The parts that AND and OR join, or the condition itself. */
  def leaves: Seq[Condition] = Seq(this)

  /** The columns that the condition reads, once for each time that it reads them. */
  def columns: Seq[ColumnReference] = Nil

  /** Whether look-ups of single values decide some part of the condition. */
  def usesValues: Boolean = false

  /** Whether null counts and look-ups of single values decide it as well as all values of a file would. */
  def isDecided: Boolean = true
}

private[pruning] object Condition {
  import FileSets.{both, either}

  /** Two conditions joined by AND or OR. */
  sealed trait Joined extends Condition {
    def left: Condition
    def right: Condition

    override def leaves: Seq[Condition] = left.leaves ++ right.leaves
    override def columns: Seq[ColumnReference] = left.columns ++ right.columns
    override def usesValues: Boolean = left.usesValues || right.usesValues
  }

  final case class And(left: Condition, right: Condition) extends Joined {
    override def conjuncts: Seq[Condition] = left.conjuncts ++ right.conjuncts

    override protected def excluded(files: Evaluation): BitSet =
      either(left.noRowMatches(files), right.noRowMatches(files))

    override protected def matched(files: Evaluation): BitSet =
      both(left.allRowsMatch(files), right.allRowsMatch(files))
  }

  final case class Or(left: Condition, right: Condition) extends Joined {
    override protected def excluded(files: Evaluation): BitSet =
      both(left.noRowMatches(files), right.noRowMatches(files))

    override protected def matched(files: Evaluation): BitSet =
      either(left.allRowsMatch(files), right.allRowsMatch(files))
  }

  /** True of every row. */
  object Always extends Condition {
    override protected def excluded(files: Evaluation): BitSet = new BitSet
    override protected def matched(files: Evaluation): BitSet = files.allFiles
  }

  /** True of no row: false, or NULL. */
  object Never extends Condition {
    override protected def excluded(files: Evaluation): BitSet = files.allFiles
    override protected def matched(files: Evaluation): BitSet = new BitSet
  }

  /** A condition without a rule. */
  final case class Unknown(reason: Reason) extends Condition {
    override protected def excluded(files: Evaluation): BitSet = new BitSet
    override protected def matched(files: Evaluation): BitSet = new BitSet
    override def isDecided: Boolean = false
  }

  /** `column IS NULL`, or `IS NOT NULL`. */
  final case class NullTest(column: ColumnReference, isNull: Boolean) extends Condition {
    override protected def excluded(files: Evaluation): BitSet =
      if (isNull) files.withoutNulls(column) else files.onlyNulls(column)

    override protected def matched(files: Evaluation): BitSet =
      if (isNull) files.onlyNulls(column) else files.withoutNulls(column)

    override def columns: Seq[ColumnReference] = Seq(column)
  }

  /** `isnan(column)`, or its negation, which is true of NULL. */
  final case class NaNTest(column: ColumnReference, isNaN: Boolean) extends Condition {
    override protected def excluded(files: Evaluation): BitSet =
      if (isNaN) either(withoutNaN(files), files.onlyNulls(column))
      else onlyNaN(files)

    override protected def matched(files: Evaluation): BitSet =
      if (isNaN) onlyNaN(files) else withoutNaN(files)

    private def withoutNaN(files: Evaluation): BitSet =
      files.where(column)((summary, i) => summary.nans(i) == 0)

    private def onlyNaN(files: Evaluation): BitSet =
      files.where(column)((summary, i) => summary.nans(i) == summary.rows(i))

    override def columns: Seq[ColumnReference] = Seq(column)
  }

  /** The term is not NULL, and in the set (`inside`) or not in it. */
  final case class Member(term: Term, set: ValueSet, inside: Boolean) extends Condition {
    override protected def excluded(files: Evaluation): BitSet = files.whereKnown(term.column) { summary =>
      val excluded = outsideOf(term.bounds(summary.bounds))
      if (summary.boundsDecide) excluded
      else files.where(summary)(i => excluded.get(i) || summary.isAllNull(i))
    }

    override protected def matched(files: Evaluation): BitSet = files.whereKnown(term.column) { summary =>
      val matched = within(term.bounds(summary.bounds))
      val isWithoutNull = term.isWithoutNull(summary)
      files.where(summary)(i => matched.get(i) && isWithoutNull(i))
    }

    private def outsideOf(bounds: Bounds): BitSet =
      if (inside) set.disjoint(bounds) else set.covers(bounds)

    private def within(bounds: Bounds): BitSet =
      if (inside) set.covers(bounds) else set.disjoint(bounds)

    override def columns: Seq[ColumnReference] = Seq(term.column)
    override def usesValues: Boolean = term.isColumn && set.points.isDefined
    override def isDecided: Boolean = usesValues
  }

  /** A condition on one column: Spark's expression decides it for listed values, `rules` by bounds. */
  final case class Evaluated(
      override val rules: Condition,
      column: ColumnReference,
      condition: Expression,
      leaf: Expression)
    extends Condition {
    override protected def excluded(files: Evaluation): BitSet = rules.noRowMatches(files)
    override protected def matched(files: Evaluation): BitSet = rules.allRowsMatch(files)
    override def columns: Seq[ColumnReference] = rules.columns :+ column
    override def usesValues: Boolean = true
    override def isDecided: Boolean = false
  }

  /** One term against another term of the same row. */
  final case class Related(left: Term, relation: Relation, right: Term) extends Condition {
    override protected def excluded(files: Evaluation): BitSet = whereKnown(files) { (a, b, bounds) =>
      if (relation == Relation.NullSafeEqual) isNeverSame(a, b, bounds)
      else i => relation.never(bounds, i) || a.isAllNull(i) || b.isAllNull(i)
    }

    override protected def matched(files: Evaluation): BitSet = whereKnown(files) { (a, b, bounds) =>
      val (aWithoutNull, bWithoutNull) = (left.isWithoutNull(a), right.isWithoutNull(b))
      i => relation.always(bounds, i) && aWithoutNull(i) && bWithoutNull(i)
    }

    /** `<=>` is also true of two NULLs: it takes more to exclude a file than values that are never equal. */
    private def isNeverSame(a: ColumnSummary, b: ColumnSummary, bounds: BoundsComparison): Int => Boolean = {
      val (aWithoutNull, bWithoutNull) = (left.isWithoutNull(a), right.isWithoutNull(b))
      i => {
        val apart = relation.never(bounds, i)
        if (aWithoutNull(i)) apart || b.isAllNull(i)
        else bWithoutNull(i) && (apart || a.isAllNull(i))
      }
    }

    private def whereKnown(files: Evaluation)(
        prove: (ColumnSummary, ColumnSummary, BoundsComparison) => Int => Boolean): BitSet =
      files.whereKnown(left.column) { a =>
        files.whereKnown(right.column) { b =>
          val test = prove(a, b, new BoundsComparison(left.bounds(a.bounds), right.bounds(b.bounds)))
          files.where(a)(i => b.hasStatistics(i) && test(i))
        }
      }

    override def columns: Seq[ColumnReference] = Seq(left.column, right.column)
    override def isDecided: Boolean = false
  }

  /** A condition that is true only of rows that match `predicate`, but not of all of them. */
  def implies(predicate: Condition, reason: Reason): Condition = And(predicate, Unknown(reason))
}

/**
 * A condition that follows from conjuncts.
 *
 * @param conjuncts the indices of these conjuncts
 */
private[pruning] final case class Consequence(condition: Condition, conjuncts: Seq[Int]) {

  /** The consequence with other indices: that of conjunct i becomes `indices(i)`. */
  def at(indices: Seq[Int]): Consequence = copy(conjuncts = conjuncts.map(indices))
}
