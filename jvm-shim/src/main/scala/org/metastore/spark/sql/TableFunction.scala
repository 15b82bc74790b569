package org.metastore.spark.sql

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.StructType

import org.metastore.spark.contract.Contract
import org.metastore.spark.statistics.objects.SummaryRow

/**
 * A table function `metastore.<name>`, as `contract/functions.json` declares it. It never writes, and starts
 * a job only in `jobRows`.
 *
 * The rows are read when the query is analyzed, so that a view is as new as the query that reads it. A
 * separate thread reads them, without a lock of Spark.
 */
abstract class TableFunction(override val name: String) extends FunctionSignature {
  protected val declared: JsonNode = TableFunction.declared(name)

  override val arguments: Seq[Argument] =
    for ((argument, entry) <- Contract.named(declared.get("arguments"))) yield {
      val default = Option(entry.get("default")).map(text => Literal(text.asText))
      Argument(argument, entry.get("required").asBoolean, default)
    }

  lazy val schema: StructType = {
    val columns = StructType.fromDDL(Contract.texts(declared, "columns").mkString(", "))
    val comments = declared.path("comments")
    StructType(columns.map { column =>
      if (comments.has(column.name)) column.withComment(comments.get(column.name).asText) else column
    })
  }

  /** The sentence about it in `metastore.help()`. */
  def meaning: String = declared.get("meaning").asText

  /** Whether only our own Python calls it: it is not listed. */
  def isInternal: Boolean = declared.path("internal").asBoolean

  /** The groups of settings that must have valid values. */
  def usedSettings: Set[String] =
    if (declared.has("settings")) Contract.texts(declared, "settings").toSet
    else Set("read")

  /** Whether `spark.metastore.read.timeout` ends a call. */
  def isLimited: Boolean = declared.path("limited").asBoolean(true)

  /**
   * Returns a function that reads the rows when the statement is executed; None if they are read in analysis.
   *
   * @throws MetastoreException an error that is reported at once
   */
  def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = None

  /**
   * The rows, in Catalyst's internal values of `schema`.
   *
   * @throws MetastoreException no such table, no statistics, ...
   */
  def rows(session: SparkSession, call: Arguments): Seq[InternalRow]
}

private object TableFunction {
  private val declared: Map[String, JsonNode] =
    Contract.named(Contract.read("functions").get("functions")).toMap
}

/** A table function of stored statistics: the data source shows them, typed, beside the texts. */
abstract class StatisticsFunction(name: String) extends TableFunction(name) {
  override final def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    rowsWithStatistics(session, call).map(_._1)

  /** The rows of the function, each with its statistics, if there are any. */
  def rowsWithStatistics(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])]
}
