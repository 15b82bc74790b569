package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.Bounds

/** A condition in negation normal form: NOT is gone, because it was pushed into the leaves when the conjunct was compiled. */
private[pruning] sealed trait Condition {

  /** What AND and OR join. */
  def leaves: Seq[Condition] = Seq(this)

  /** The columns that it reads, one for each place where it does. */
  def columns: Seq[ColumnReference] = Nil

  /** Whether single values decide some part of it. */
  def asksForValues: Boolean = false
}

private[pruning] object Condition {

  /** Two conditions joined by AND or OR. */
  sealed trait Joined extends Condition {
    def left: Condition
    def right: Condition

    override def leaves: Seq[Condition] = left.leaves ++ right.leaves
    override def columns: Seq[ColumnReference] = left.columns ++ right.columns
    override def asksForValues: Boolean = left.asksForValues || right.asksForValues
  }

  final case class And(left: Condition, right: Condition) extends Joined
  final case class Or(left: Condition, right: Condition) extends Joined

  /** True of every row. */
  case object Always extends Condition

  /** True of no row: false, or NULL. */
  case object Never extends Condition

  /** Nothing can be said. */
  final case class Unknown(reason: Reason) extends Condition

  /** `column IS NULL`, or `IS NOT NULL`. */
  final case class NullTest(column: ColumnReference, isNull: Boolean) extends Condition {
    override def columns: Seq[ColumnReference] = Seq(column)
  }

  /** `isnan(column)`, or its negation, which is true of NULL. */
  final case class NaNTest(column: ColumnReference, isNaN: Boolean) extends Condition {
    override def columns: Seq[ColumnReference] = Seq(column)
  }

  /** The term is not NULL, and in the set (`inside`) or not in it. */
  final case class Member(term: Term, set: ValueSet, inside: Boolean) extends Condition {
    override def columns: Seq[ColumnReference] = Seq(term.column)
    override def asksForValues: Boolean = term.isColumn && set.points.isDefined
  }

  /** What Catalyst's own expression says of single values of the one column that it reads; of bounds `rules` say the same or less. */
  final case class Evaluated(
      rules: Condition,
      column: ColumnReference,
      condition: Expression,
      leaf: Expression)
    extends Condition {
    override def columns: Seq[ColumnReference] = rules.columns :+ column
    override def asksForValues: Boolean = true
  }

  /** One term against another term of the same row. */
  final case class Related(left: Term, relation: Relation, right: Term) extends Condition {
    override def columns: Seq[ColumnReference] = Seq(left.column, right.column)
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

/** How two terms of a row are compared. */
private[pruning] sealed trait Relation

private[pruning] object Relation {
  case object Less extends Relation
  case object LessOrEqual extends Relation
  case object Equal extends Relation
  case object NotEqual extends Relation
  case object NullSafeEqual extends Relation
}

/** A column seen through monotone steps; `dataType` is the type of the result. NULL exactly where the column is. */
private[pruning] final case class Term(column: ColumnReference, dataType: DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: Bounds): Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  def after(result: DataType, more: Step*): Term = Term(column, result, steps ++ more)
}
