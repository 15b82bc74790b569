package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._

/** `metastore.frequencies(table, column [, top] [, file] [, at])`: one row a value, most frequent first. */
object FrequenciesFunction extends TableFunction {
  override val name = "frequencies"
  override val arguments: Seq[Argument] = Seq(
    Argument("table", required = true), Argument("column", required = true), Argument("top", required = false),
    Argument("file", required = false), Argument("at", required = false))
  override val schema: StructType = StructType.fromDDL("value STRING, frequency BIGINT, fraction DOUBLE, exact BOOLEAN, error BIGINT")
  override val meaning = "The most frequent values of a column, all that are kept without top; fraction is of all values but null; " +
    "a value may occur error times more often, NULL where that is not known"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val top = call.positive("top")
    val column = ColumnDetails.of(session, call)
    column.frequent(top).map { found =>
      val fraction = column.values.filter(_ > 0).map(found.frequency.toDouble / _)
      val error = Some(found.error).filter(_ => column.isWhole)
      ResultRow.row(column.text.value(Some(found.value)), found.frequency, fraction, error.contains(0L), error)
    }
  }
}
