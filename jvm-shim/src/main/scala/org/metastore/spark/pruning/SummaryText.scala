package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Attempt, BinaryText}
import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSummary, FileSetStatistics}

/** Writes the statistics of a column in a file for people: `a in [1, 5], 2 of 10 rows null`. */
private[pruning] object SummaryText {

  def bounds(files: FileSetStatistics, column: ColumnReference, file: Int): String =
    files.column(column.key, column.dataType) match {
      case Right(summary) if summary.hasStatistics(file) =>
        s"${column.name}${range(summary, file)}${nulls(summary, file)}"
      case _ =>
        s"${column.name} unknown"
    }

  /** The source of the single values: `, all 200 values listed`. */
  def values(files: FileSetStatistics, column: ColumnReference, file: Int): String =
    files.values(column.key, column.dataType, Array(file), filters = true).evidence(file).fold("")(_.text)

  private def range(summary: ColumnSummary, file: Int): String = {
    val (lo, hi) = (CatalystValue.lo(summary, file), CatalystValue.hi(summary, file))
    if (lo.isEmpty && hi.isEmpty) ""
    else {
      val from = text(lo, summary.dataType, summary.bounds.loExact(file))
      val to = text(hi, summary.dataType, summary.bounds.hiExact(file))
      s" in [$from, $to]"
    }
  }

  private def text(bound: Option[Any], dataType: DataType, exact: Boolean): String =
    bound.fold("?") { value =>
      val rendered = value match {
        case bytes: Array[Byte] =>
          BinaryText.render(bytes)
        case _ =>
          Attempt.orNone(Literal(value, dataType).toString).getOrElse(value.toString)
      }
      if (exact) rendered else s"$rendered…"
    }

  private def nulls(summary: ColumnSummary, file: Int): String =
    if (summary.nulls(file) < 0) ""
    else s", ${summary.nulls(file)} of ${summary.rows(file)} rows null"
}
