package org.metastore.spark.pruning

import scala.collection.mutable

import org.metastore.spark.pruning.Condition.{And, Evaluated, Member, NaNTest, NullTest, Or}
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.DoubleOrder

/** Conditions that hold together on one column: no value may be in all their sets, though a file's bounds meet each of them. */
private[pruning] object Intersections {

  /** What follows from conditions that hold together and from no single one. */
  def find(conditions: IndexedSeq[Condition]): Seq[Consequence] = {
    val byColumn = mutable.LinkedHashMap.empty[ColumnReference, mutable.ArrayBuffer[(ColumnCondition, Int)]]
    for {
      i <- conditions.indices
      column <- columnConditions(conditions(i))
    } byColumn.getOrElseUpdate(column.use, mutable.ArrayBuffer.empty) += column -> i
    val consequences = for {
      (use, pairs) <- byColumn.toSeq
      common <- unite(use, pairs.toSeq.map(_._1))
    } yield Consequence(common, pairs.toSeq.map(_._2).distinct)
    consequences.sortBy(_.conjuncts.max)
  }

  /** An equal condition: each AND inside it stands together with what follows from it. */
  def tighten(condition: Condition): Condition = condition match {
    case Or(left, right) =>
      Or(tighten(left), tighten(right))
    case evaluated: Evaluated =>
      evaluated.copy(rules = tighten(evaluated.rules))
    case and: And =>
      val parts = and.conjuncts.map(tighten).toIndexedSeq
      val consequences = find(parts).map(_.condition)
      (parts ++ consequences).reduceLeft(And(_, _))
    case leaf => leaf
  }

  private def columnConditions(condition: Condition): Seq[ColumnCondition] =
    condition.conjuncts.flatMap(_.rules.conjuncts).flatMap(onColumn)

  /** A condition on the bare column; `values` are those of which it is true, `None`: all. */
  private final case class ColumnCondition(
      use: ColumnReference,
      values: Option[ValueSet],
      ofNull: Boolean = false,
      onlyNull: Boolean = false)

  private val OnlyNaN = ValueSet.LongRange(DoubleOrder.NaN, DoubleOrder.NaN)
  private val BelowNaN = ValueSet.LongRange(Long.MinValue, DoubleOrder.NaN - 1)

  private def onColumn(condition: Condition): Option[ColumnCondition] = condition match {
    case Member(term, set, true) if term.isColumn =>
      Some(ColumnCondition(term.column, Some(set)))
    case NullTest(use, isNull) =>
      Some(ColumnCondition(use, None, ofNull = isNull, onlyNull = isNull))
    case NaNTest(use, true) =>
      Some(ColumnCondition(use, Some(OnlyNaN)))
    case NaNTest(use, false) =>
      Some(ColumnCondition(use, Some(BelowNaN), ofNull = true))
    case _ => None
  }

  private def unite(use: ColumnReference, conditions: Seq[ColumnCondition]): Option[Condition] = {
    val sets = conditions.flatMap(_.values)
    if (sets.isEmpty || conditions.forall(_.ofNull)) None
    else {
      val common = if (conditions.exists(_.onlyNull)) ValueSet.NoValue else sets.reduceLeft(_.intersect(_))
      val isSaidBySingle = conditions.exists(single => single.values.contains(common) && !single.ofNull)
      Optional.when(!isSaidBySingle)(Member(Term(use, use.dataType, Nil), common, inside = true))
    }
  }
}
