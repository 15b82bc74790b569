package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/**
 * A condition in negation normal form: NOT is gone, because it was pushed into the leaves when the conjunct was compiled.
 * It has two questions with separate rules: neither negates the other.
 */
private[pruning] sealed trait Condition {

  /** The files of which it is proven that no row makes the condition true. */
  final def noRowMatches(files: Evaluation): BitSet = {
    files.requireTime()
    excluded(files)
  }

  /** The files of which it is proven that the condition is true of every row. */
  final def allRowsMatch(files: Evaluation): BitSet = {
    files.requireTime()
    matched(files)
  }

  protected def excluded(files: Evaluation): BitSet
  protected def matched(files: Evaluation): BitSet

  /** The conditions that hold together wherever this one does. */
  def conjuncts: Seq[Condition] = Seq(this)

  /** The part of it that bounds can decide. */
  def rules: Condition = this

  /** What AND and OR join. */
  def leaves: Seq[Condition] = Seq(this)

  /** The columns that it reads, one for each place where it does. */
  def columns: Seq[ColumnReference] = Nil

  /** Whether single values decide some part of it. */
  def asksForValues: Boolean = false

  /** Whether counts of nulls and look-ups of single values say all about it that the values of a file can. */
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
    override def asksForValues: Boolean = left.asksForValues || right.asksForValues
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

  /** Nothing can be said. */
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
      val proven = outsideOf(term.bounds(summary.bounds))
      if (summary.boundsDecide) proven
      else files.where(summary)(i => proven.get(i) || summary.isAllNull(i))
    }

    override protected def matched(files: Evaluation): BitSet = files.whereKnown(term.column) { summary =>
      val proven = within(term.bounds(summary.bounds))
      val isWithoutNull = term.isWithoutNull(summary)
      files.where(summary)(i => proven.get(i) && isWithoutNull(i))
    }

    private def outsideOf(bounds: Bounds): BitSet =
      if (inside) set.disjoint(bounds) else set.covers(bounds)

    private def within(bounds: Bounds): BitSet =
      if (inside) set.covers(bounds) else set.disjoint(bounds)

    override def columns: Seq[ColumnReference] = Seq(term.column)
    override def asksForValues: Boolean = term.isColumn && set.points.isDefined
    override def isDecided: Boolean = asksForValues
  }

  /** What Catalyst's own expression says of single values of the one column that it reads; of bounds `rules` say the same or less. */
  final case class Evaluated(
      override val rules: Condition,
      column: ColumnReference,
      condition: Expression,
      leaf: Expression)
    extends Condition {
    override protected def excluded(files: Evaluation): BitSet = rules.noRowMatches(files)
    override protected def matched(files: Evaluation): BitSet = rules.allRowsMatch(files)
    override def columns: Seq[ColumnReference] = rules.columns :+ column
    override def asksForValues: Boolean = true
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

    /** `<=>` also holds where both are NULL, so values that never meet are not enough. */
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

  /** A condition that holds wherever `predicate` does, and says no more: matches of it prove nothing. */
  def implies(predicate: Condition, reason: Reason): Condition = And(predicate, Unknown(reason))
}

/**
 * A condition that follows from conjuncts.
 *
 * @param conjuncts the places of these
 */
private[pruning] final case class Consequence(condition: Condition, conjuncts: Seq[Int]) {

  /** The same, where conjunct i stands at `places(i)`. */
  def at(places: Seq[Int]): Consequence = copy(conjuncts = conjuncts.map(places))
}
