package org.metastore.spark.pruning

import scala.collection.mutable

import org.metastore.spark.pruning.Condition.{And, Evaluated, Member, NaNTest, NullTest, Or}
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.DoubleOrder

/** Intersects conditions on one column: a file may hold values of each set, and no value of all sets. */
private[pruning] object Intersections {

  /** The consequences of conditions joined by AND that follow from no single one. */
  def find(conditions: IndexedSeq[Condition]): Seq[Consequence] = {
    val byColumn = mutable.LinkedHashMap.empty[ColumnReference, mutable.ArrayBuffer[(ColumnCondition, Int)]]
    for {
      i <- conditions.indices
      condition <- columnConditions(conditions(i))
    } byColumn.getOrElseUpdate(condition.column, mutable.ArrayBuffer.empty) += condition -> i
    val consequences = for {
      (column, pairs) <- byColumn.toSeq
      (columnConditions, indices) = pairs.toSeq.unzip
      common <- intersect(column, columnConditions)
    } yield Consequence(common, indices.distinct)
    consequences.sortBy(_.conjuncts.max)
  }

  /** An equal condition, in which AND also joins the consequences of its parts. */
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

  /**
   * A condition on the bare column.
   *
   * @param values      the values of which it is true; None if it is true of all
   * @param matchesNull whether it is true of NULL
   * @param isNullTest  whether it is true of nothing but NULL
   */
  private final case class ColumnCondition(
      column: ColumnReference,
      values: Option[ValueSet],
      matchesNull: Boolean = false,
      isNullTest: Boolean = false)

  private val OnlyNaN = ValueSet.LongRange(DoubleOrder.NaN, DoubleOrder.NaN)
  private val BelowNaN = ValueSet.LongRange(Long.MinValue, DoubleOrder.NaN - 1)

  private def onColumn(condition: Condition): Option[ColumnCondition] = condition match {
    case Member(term, set, true) if term.isColumn =>
      Some(ColumnCondition(term.column, Some(set)))
    case NullTest(column, isNull) =>
      Some(ColumnCondition(column, None, matchesNull = isNull, isNullTest = isNull))
    case NaNTest(column, true) =>
      Some(ColumnCondition(column, Some(OnlyNaN)))
    case NaNTest(column, false) =>
      Some(ColumnCondition(column, Some(BelowNaN), matchesNull = true))
    case _ => None
  }

  /** The values that match all conditions on a column; None if a single condition says as much. */
  private def intersect(column: ColumnReference, conditions: Seq[ColumnCondition]): Option[Condition] = {
    val sets = conditions.flatMap(_.values)
    if (sets.isEmpty || conditions.forall(_.matchesNull)) None
    else {
      val common = if (conditions.exists(_.isNullTest)) ValueSet.NoValue else sets.reduceLeft(_.intersect(_))
      val isFromSingle = conditions.exists(single => single.values.contains(common) && !single.matchesNull)
      Optional.when(!isFromSingle)(Member(Term(column, column.dataType, Nil), common, inside = true))
    }
  }
}
