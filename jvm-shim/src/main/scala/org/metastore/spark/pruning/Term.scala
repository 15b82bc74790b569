package org.metastore.spark.pruning

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/** Monotone functions of a column, NULL if the column is; `dataType` is the type of the result. */
private[pruning] final case class Term(column: ColumnReference, dataType: DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: Bounds): Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  /** Whether the term has no NULL in a file: neither the column nor a step gives one. */
  def isWithoutNull(column: ColumnSummary): Int => Boolean = {
    // Each step's own results must be known: integer arithmetic makes known bounds of unknown ones.
    val results = steps.scanLeft(column.bounds)((bounds, step) => step(bounds)).tail
    val uncertain = for ((step, bounds) <- steps.zip(results) if step.mayGiveNull) yield bounds
    file => column.nulls(file) == 0 && uncertain.forall(_.hasBoth(file))
  }

  def after(result: DataType, more: Step*): Term = Term(column, result, steps ++ more)
}
