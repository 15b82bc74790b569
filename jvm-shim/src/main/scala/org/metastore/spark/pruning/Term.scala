package org.metastore.spark.pruning

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/** A column seen through monotone steps; `dataType` is the type of the result. NULL where the column is. */
private[pruning] final case class Term(column: ColumnReference, dataType: DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: Bounds): Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  /** Tells of each file whether the term has no NULL: none in the column, and none from a step, whose own bounds say so. */
  def isWithoutNull(column: ColumnSummary): Int => Boolean = {
    // Not the bounds of the whole term: integer arithmetic takes unknown bounds for the widest.
    val results = steps.scanLeft(column.bounds)((bounds, step) => step(bounds)).tail
    val uncertain = for ((step, bounds) <- steps.zip(results) if step.mayGiveNull) yield bounds
    file => column.nulls(file) == 0 && uncertain.forall(_.hasBoth(file))
  }

  def after(result: DataType, more: Step*): Term = Term(column, result, steps ++ more)
}
