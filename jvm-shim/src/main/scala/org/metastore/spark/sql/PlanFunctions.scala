package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow

import org.metastore.spark.explain.{ExplainQuery, OperatorEstimate}

/** `metastore.explain(query)`: one row a scan and data file. */
object ExplainFunction extends TableFunction("explain") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    ExplainQuery.decisions(session, call.text("query")).map { file =>
      ResultRow.row(
        file.scan, file.table, file.path, file.kept, file.reason, file.conjunct, file.statistic, file.rows,
        file.estimate.map(_.rows), file.estimate.map(_.source), file.estimate.map(_.isExact))
    }
}

/** `metastore.estimates(query)`: one row an operator of the optimized plan. */
object EstimatesFunction extends TableFunction("estimates") {
  private val Run = "analyze"

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
