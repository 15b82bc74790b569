package org.metastore.spark.sql

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal

import org.metastore.spark.explain.FilteredQuery
import org.metastore.spark.python.{AttachedPython, FilteredSummaryStatement}

/** `metastore.filtered_summary(query)`: one row a column of the query's one table, from the Python that runs ANALYZE. */
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

  private def row(cells: JsonNode): InternalRow = ResultRow.row(schema.fields.toSeq.zipWithIndex.map {
    case (field, i) =>
      Option(cells.get(i)).filterNot(_.isNull).map(text =>
        Arguments.cast(Literal(text.asText), field.dataType))
  }: _*)
}

/** `metastore_filter(query)`: the table and the WHERE of a query in the first row, and what planning tells of data files. */
object FilterFunction extends TableFunction("filter") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val query = FilteredQuery.parse(session, call.text("query"))
    val (skipped, full) = query.files
    def told(paths: Seq[String], isFull: Boolean) = paths.map(ResultRow.row(None, None, _, isFull))
    ResultRow.row(query.table, query.condition, None, None) +: (told(skipped, isFull = false) ++ told(
      full,
      isFull = true))
  }
}
