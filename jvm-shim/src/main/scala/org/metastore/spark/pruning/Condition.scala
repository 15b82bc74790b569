package org.metastore.spark.pruning

import org.metastore.spark.explain.Reason

/**
 * A condition in negation normal form: NOT is gone, because it was pushed into the leaves when the conjunct was compiled. A
 * leaf that has no exact rule is `Unknown`, which proves nothing: neither that no row matches nor that all do.
 */
private[pruning] sealed trait Condition

private[pruning] object Condition {
  final case class And(left: Condition, right: Condition) extends Condition
  final case class Or(left: Condition, right: Condition) extends Condition

  /** True of every row. */
  case object Always extends Condition

  /** True of no row: false, or NULL. */
  case object Never extends Condition

  /** Nothing can be said. */
  final case class Unknown(reason: Reason) extends Condition

  /** `column IS NULL`, or `IS NOT NULL`. */
  final case class NullTest(column: ColumnReference, isNull: Boolean) extends Condition

  /** `isnan(column)`, or its negation, which is true of NULL. */
  final case class NaNTest(column: ColumnReference, isNaN: Boolean) extends Condition

  /** The term is not NULL, and in the set (`inside`) or not in it. */
  final case class Member(term: Term, set: ValueSet, inside: Boolean) extends Condition

  /** One term against another term of the same row. */
  final case class Related(left: Term, relation: Relation, right: Term) extends Condition

  /** A condition that holds wherever `predicate` does, and says no more: matches of it prove nothing. */
  def implies(predicate: Condition, reason: Reason): Condition = And(predicate, Unknown(reason))
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
private[pruning] final case class Term(column: ColumnReference, dataType: org.apache.spark.sql.types.DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: org.metastore.spark.store.Bounds): org.metastore.spark.store.Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  def after(step: Option[Step], result: org.apache.spark.sql.types.DataType): Term =
    Term(column, result, steps ++ step)
}
