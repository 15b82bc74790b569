package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.explain.ExplainQuery
import org.metastore.spark.sql.{ResultRow, Argument, Arguments, TableFunction}

/** `metastore.explain(query)`: one row a scan and data file. */
object ExplainFunction extends TableFunction {
  override val name = "explain"
  override val arguments: Seq[Argument] = Seq(Argument("query", required = true))
  override val schema: StructType = StructType.fromDDL(
    "scan INT, table STRING, path STRING, kept BOOLEAN, reason STRING, conjunct STRING, statistic STRING, rows BIGINT, " +
      "estimated_rows BIGINT, estimated_from STRING, estimate_exact BOOLEAN")
  override val meaning = "Which data files a query would read, and why; the query is planned, not run"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    ExplainQuery.decisions(session, call.text("query")).map { file =>
      ResultRow.row(
        file.scan, file.table, file.path, file.kept, file.reason, file.conjunct, file.statistic, file.rows,
        file.estimate.map(_.rows), file.estimate.map(_.source), file.estimate.map(_.isExact))
    }
}
