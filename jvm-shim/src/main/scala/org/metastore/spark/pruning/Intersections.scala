package org.metastore.spark.pruning

import org.metastore.spark.pruning.Condition.{And, Member, NaNTest, NullTest, Or}
import org.metastore.spark.store.DoubleOrder

/**
 * Conditions that hold together on one column: no value may be in all their sets, though a file's bounds meet each of them.
 * NaN, above every number, meets `v >= 10`, and `v <= 20` leaves it out.
 */
private[pruning] object Intersections {

  /** What follows from conditions that hold together and from no single one, and which of them it follows from. */
  def of(conditions: IndexedSeq[Condition]): Seq[(Condition, Seq[Int])] = {
    val parts = for {
      (condition, i) <- conditions.zipWithIndex
      part <- conjuncts(condition)
      column <- onColumn(part)
    } yield (column, i)
    parts.groupBy(_._1.use).values.toSeq
      .flatMap(all => unite(all.map(_._1)).map(_ -> all.map(_._2).distinct))
      .sortBy(_._2.max)
  }

  /** An equal condition: each AND inside it stands together with what follows from it. */
  def tighten(condition: Condition): Condition = condition match {
    case Or(left, right) => Or(tighten(left), tighten(right))
    case and: And =>
      val parts = conjuncts(and).map(tighten).toIndexedSeq
      (parts ++ of(parts).map(_._1)).reduceLeft(And(_, _))
    case leaf => leaf
  }

  private def conjuncts(condition: Condition): Seq[Condition] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case leaf => Seq(leaf)
  }

  /**
   * A condition on the bare column.
   *
   * @param values the values of which it is true; `None`: all
   * @param ofNull it is true of NULL; `onlyNull`: and of nothing else
   */
  private final case class OnColumn(use: ColumnReference, values: Option[ValueSet], ofNull: Boolean, onlyNull: Boolean)

  private def onColumn(condition: Condition): Option[OnColumn] = condition match {
    case Member(term, set, true) if term.isColumn => Some(OnColumn(term.column, Some(set), ofNull = false, onlyNull = false))
    case NullTest(use, isNull) => Some(OnColumn(use, None, ofNull = isNull, onlyNull = isNull))
    case NaNTest(use, true) =>
      Some(OnColumn(use, Some(ValueSet.LongRange(DoubleOrder.NaN, DoubleOrder.NaN)), ofNull = false, onlyNull = false))
    case NaNTest(use, false) =>
      Some(OnColumn(use, Some(ValueSet.LongRange(Long.MinValue, DoubleOrder.NaN - 1)), ofNull = true, onlyNull = false))
    case _ => None
  }

  private def unite(conditions: Seq[OnColumn]): Option[Condition] = {
    val sets = conditions.flatMap(_.values)
    if (sets.isEmpty || conditions.size < 2 || conditions.forall(_.ofNull)) None
    else {
      val common = if (conditions.exists(_.onlyNull)) ValueSet.Nothing else sets.reduceLeft(_.intersect(_))
      val use = conditions.head.use
      if (conditions.exists(c => c.values.contains(common) && !c.ofNull)) None else Some(Member(Term(use, use.dataType, Nil), common, inside = true))
    }
  }
}
