package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._

/** `metastore.histogram(table, column [, bins] [, file] [, at])`: one row a bin. */
object HistogramFunction extends TableFunction {
  override val name = "histogram"
  override val arguments: Seq[Argument] = Seq(
    Argument("table", required = true), Argument("column", required = true), Argument("bins", required = false),
    Argument("file", required = false), Argument("at", required = false))
  override val schema: StructType = StructType.fromDDL("bin BIGINT, lo STRING, hi STRING, count BIGINT, distinct BIGINT, exact BOOLEAN")
  override val meaning = "How the values of a column are distributed, in bins of about equally many; at most as many bins as are kept; " +
    "exact where a bin holds as many live rows as it says"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val wanted = call.positive("bins")
    val column = ColumnDetails.of(session, call)
    column.histogram.toSeq.map(bins => wanted.fold(bins)(bins.coarsen)).flatMap { bins =>
      val edges = bins.edges.map(column.text.edge(_, column.row))
      bins.counts.indices.map { i =>
        ResultRow.row(i.toLong, edges(i), edges(i + 1), bins.counts(i), bins.distincts.lift(i), column.isWhole && bins.isExact(i))
      }
    }
  }
}
