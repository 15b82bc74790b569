package org.metastore.spark.pruning

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/** A column seen through monotone steps; `dataType` is the type of the result. NULL where the column is. */
private[pruning] final case class Term(column: ColumnReference, dataType: DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: Bounds): Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  /** Whether no row of a file has NULL; `bounds` are those of the term. */
  def isWithoutNull(summary: ColumnSummary, bounds: Bounds, file: Int): Boolean =
    summary.nulls(file) == 0 && (!steps.exists(_.mayGiveNull) || bounds.hasBoth(file))

  def after(result: DataType, more: Step*): Term = Term(column, result, steps ++ more)
}
