package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType

import org.metastore.spark.store.{ColumnZones, FileStatistics, KnownValues, StoredValue}

/** Writes what is known of a column in a file as people read it: `a in [1, 5], 2 of 10 rows null`. */
private[pruning] object ZoneText {

  def of(files: FileStatistics, use: ColumnUse, file: Int): String = files.column(use.key, use.dataType) match {
    case Right(zones) if zones.known(file) => s"${use.name}${range(zones, file)}${nulls(zones, file)}"
    case _ => s"${use.name} unknown"
  }

  /** What is known of single values: `, all 200 values listed`. */
  def values(files: FileStatistics, use: ColumnUse, file: Int): String =
    files.values(use.key, use.dataType, Array(file), filters = true).known(file) match {
      case Some(KnownValues.Listed(count)) => s", all $count values listed"
      case Some(KnownValues.Placed) => ", where each value is listed"
      case Some(KnownValues.Filtered) => ", bloom filter"
      case None => ""
    }

  private def range(zones: ColumnZones, file: Int): String = {
    val (lo, hi) = (StoredValue.lo(zones, file), StoredValue.hi(zones, file))
    if (lo.isEmpty && hi.isEmpty) ""
    else s" in [${text(lo, zones.dataType, zones.bounds.loExact(file))}, ${text(hi, zones.dataType, zones.bounds.hiExact(file))}]"
  }

  private def text(bound: Option[Any], dataType: DataType, exact: Boolean): String = bound.fold("?") { value =>
    val shown = try Literal(value, dataType).toString catch { case NonFatal(_) => value.toString }
    if (exact) shown else s"$shown…"
  }

  private def nulls(zones: ColumnZones, file: Int): String =
    if (zones.nulls(file) < 0) "" else s", ${zones.nulls(file)} of ${zones.rows(file)} rows null"
}
