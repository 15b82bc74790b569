package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.explain.{ExplainQuery, OperatorEstimate}

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

/** `metastore.estimates(query)`: one row an operator of the optimized plan. */
object EstimatesFunction extends TableFunction {
  private val Run = "analyze"

  override val name = "estimates"
  override val arguments: Seq[Argument] = Seq(Argument("query", required = true), Argument(Run, required = false))
  override val schema: StructType = StructType.fromDDL(
    "operator INT, parent INT, name STRING, detail STRING, estimated_rows DECIMAL(38,0), estimated_bytes DECIMAL(38,0), " +
      "matching_rows BIGINT, source STRING, exact BOOLEAN, rows BIGINT, q_error DOUBLE")
  override val meaning =
    "How many rows the optimizer expects of each operator of a query, and from which statistics; with analyze => true the " +
      "query is run, to see how many came"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = answer(session, call)()

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] =
    if (call.flag(Run)) Some(answer(session, call)) else None

  private def answer(session: SparkSession, call: Arguments): () => Seq[InternalRow] = {
    val estimates = OperatorEstimate.of(session, call.text("query"), call.flag(Run))
    () => estimates().map { one =>
      ResultRow.row(
        one.operator, one.parent, one.name, one.detail, one.rows.map(ResultRow.decimalOf), ResultRow.decimalOf(one.bytes), one.scan.map(_.rows),
        one.scan.map(_.source), one.scan.map(_.isExact), one.countedRows, one.qError)
    }
  }
}
