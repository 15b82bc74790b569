package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.store.SummaryRow

/** The columns of `table-summary` (docs/format.md) that the data source adds to the texts of a view. */
object SummaryColumns {

  /** The value of a column, as Catalyst's; null where there is none, or no such column. */
  def value(row: SummaryRow, column: String): Any = column match {
    case "rows" => opt(row.rows)
    case "nulls" => opt(row.nulls)
    case "nans" => opt(row.nans)
    case "lo_long" | "lo_double" | "lo_binary" => encoded(row.lo, column)
    case "hi_long" | "hi_double" | "hi_binary" => encoded(row.hi, column)
    case "lo_exact" => row.loExact
    case "hi_exact" => row.hiExact
    case "distinct" => opt(row.distinct)
    case "distinct_error" => opt(row.distinctError)
    case "sum_exact" => opt(row.sumExact.map(sum => Decimal(sum, SumPrecision, 0)))
    case "sum" => opt(row.sum)
    case "mean" => opt(row.mean)
    case "m2" => opt(row.m2)
    case "avg_len" => opt(row.avgLen)
    case "max_len" => opt(row.maxLen)
    case "trues" => opt(row.trues)
    case "compressed_bytes" => opt(row.compressedBytes)
    case "uncompressed_bytes" => opt(row.uncompressedBytes)
    case "frequencies_floor" => opt(row.frequenciesFloor)
    case "percentiles_long" | "percentiles_double" | "percentiles_binary" => percentiles(row.percentiles, column)
    case "singles" => opt(row.singles)
    case "frequencies_algorithm" => opt(row.frequenciesAlgorithm.map(UTF8String.fromString))
    case "extra" => extra(row.extra)
    case _ => null
  }

  private val SumPrecision = 38

  private def opt(value: Option[Any]): Any = value match {
    case Some(found) => found
    case None => null
  }

  private def isIn(value: Any, column: String): Boolean = value match {
    case _: Long => column.endsWith("_long")
    case _: Double => column.endsWith("_double")
    case _ => column.endsWith("_binary")
  }

  private def encoded(value: Option[Any], column: String): Any = opt(value.filter(isIn(_, column)))

  private def percentiles(values: IndexedSeq[Any], column: String): Any =
    if (values.headOption.exists(isIn(_, column))) new GenericArrayData(values.toArray[Any]) else null

  private def extra(values: Map[String, Array[Byte]]): Any = {
    val (names, bytes) = values.toSeq.unzip
    if (names.isEmpty) null else ArrayBasedMapData(names.map(UTF8String.fromString).toArray[Any], bytes.toArray[Any])
  }
}
