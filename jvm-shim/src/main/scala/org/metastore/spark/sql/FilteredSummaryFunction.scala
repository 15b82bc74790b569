package org.metastore.spark.sql

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal

import org.metastore.spark.explain.FilteredQuery
import org.metastore.spark.python.{AttachedPython, FilteredSummaryStatement}

/**
 * `metastore.filtered_summary(query)`: one row for each column of the query's one table, computed by Python.
 */
object FilteredSummaryFunction extends TableFunction("filtered_summary") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = answer(session, call)()

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] =
    Some(answer(session, call))

  private def answer(session: SparkSession, call: Arguments): () => Seq[InternalRow] = {
    val query = call.text("query")
    val table = FilteredQuery.parse(session, query).table
    val statement = FilteredSummaryStatement(table, query)
    () => AttachedPython.run(session, statement).elements.asScala.map(row).toSeq
  }

  private def row(cells: JsonNode): InternalRow = {
    val values = for ((field, i) <- schema.fields.toSeq.zipWithIndex) yield {
      if (cells.hasNonNull(i)) Arguments.cast(Literal(cells.get(i).asText), field.dataType) else null
    }
    ResultRow.row(values: _*)
  }
}

/**
 * `metastore_filter(query)`: the first row has the table and the WHERE of a query, the others its data files.
 */
object FilterFunction extends TableFunction("filter") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val query = FilteredQuery.parse(session, call.text("query"))
    val (skipped, full) = query.files
    def rowsOf(paths: Seq[String], isFull: Boolean) = paths.map(ResultRow.row(None, None, _, isFull))
    val first = ResultRow.row(query.table, query.condition, None, None)
    first +: (rowsOf(skipped, isFull = false) ++ rowsOf(full, isFull = true))
  }
}
