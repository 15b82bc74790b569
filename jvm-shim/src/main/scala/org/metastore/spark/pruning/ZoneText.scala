package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType

import org.metastore.spark.store.{ColumnSummary, FileSetStatistics, ValueEvidence, CatalystValue}

/** Writes what is known of a column in a file as people read it: `a in [1, 5], 2 of 10 rows null`. */
private[pruning] object SummaryText {

  def of(files: FileSetStatistics, use: ColumnReference, file: Int): String = files.column(use.key, use.dataType) match {
    case Right(zones) if zones.hasStatistics(file) => s"${use.name}${range(zones, file)}${nulls(zones, file)}"
    case _ => s"${use.name} unknown"
  }

  /** What is known of single values: `, all 200 values listed`. */
  def values(files: FileSetStatistics, use: ColumnReference, file: Int): String =
    files.values(use.key, use.dataType, Array(file), filters = true).evidence(file) match {
      case Some(ValueEvidence.InList(count)) => s", all $count values listed"
      case Some(ValueEvidence.InIndex) => ", where each value is listed"
      case Some(ValueEvidence.InFilter) => ", bloom filter"
      case None => ""
    }

  private def range(zones: ColumnSummary, file: Int): String = {
    val (lo, hi) = (CatalystValue.lo(zones, file), CatalystValue.hi(zones, file))
    if (lo.isEmpty && hi.isEmpty) ""
    else s" in [${text(lo, zones.dataType, zones.bounds.loExact(file))}, ${text(hi, zones.dataType, zones.bounds.hiExact(file))}]"
  }

  private def text(bound: Option[Any], dataType: DataType, exact: Boolean): String = bound.fold("?") { value =>
    val shown = try Literal(value, dataType).toString catch { case NonFatal(_) => value.toString }
    if (exact) shown else s"$shown…"
  }

  private def nulls(zones: ColumnSummary, file: Int): String =
    if (zones.nulls(file) < 0) "" else s", ${zones.nulls(file)} of ${zones.rows(file)} rows null"
}
