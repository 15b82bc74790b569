package org.metastore.spark.sql

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.StructType

import org.metastore.spark.contract.Contract
import org.metastore.spark.statistics.objects.SummaryRow

/**
 * A table function `metastore.<name>`, as `contract/functions.json` declares it: reads, never writes, never starts a job, unless it is deferred.
 *
 * The rows are made when the query is analyzed, so the answer of a view is as new as the query that reads it; by a thread of
 * their own, while no lock of Spark is held.
 */
abstract class TableFunction(override val name: String) extends FunctionSignature {
  protected val declared: JsonNode = TableFunction.declared(name)

  override val arguments: Seq[Argument] =
    for ((argument, one) <- Contract.named(declared.get("arguments"))) yield {
      Argument(
        argument,
        one.get("required").asBoolean,
        Option(one.get("default")).map(text => Literal(text.asText)))
    }

  lazy val schema: StructType = {
    val columns = StructType.fromDDL(Contract.texts(declared, "columns").mkString(", "))
    val comments = Option(declared.get("comments"))
    StructType(columns.map { column =>
      val comment = comments.flatMap(texts => Option(texts.get(column.name)))
      comment.fold(column)(text => column.withComment(text.asText))
    })
  }

  /** One sentence for `metastore.help()`. */
  def meaning: String = declared.get("meaning").asText

  /** Whether our own Python asks it: it is not listed, and not called by people. */
  def isInternal: Boolean = declared.path("internal").asBoolean

  /** Whose settings have to have values that they can have. */
  def usedSettings: Set[String] =
    if (declared.has("settings")) Contract.texts(declared, "settings").toSet
    else Set("read")

  /** Whether `spark.metastore.read.timeout` ends a call. */
  def isLimited: Boolean = declared.path("limited").asBoolean(true)

  /**
   * What makes the rows when the statement is executed; None where they are made when it is analyzed.
   *
   * @throws MetastoreException what the user has to know at once
   */
  def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = None

  /**
   * The answer, in Catalyst's internal values of `schema`.
   *
   * @throws MetastoreException what the user has to know instead: no such table, no statistics, ...
   */
  def rows(session: SparkSession, call: Arguments): Seq[InternalRow]
}

private object TableFunction {
  private val declared: Map[String, JsonNode] =
    Contract.named(Contract.read("functions").get("functions")).toMap
}

/** A table function whose rows are made of stored statistics: the data source shows these, typed, beside the texts. */
abstract class StatisticsFunction(name: String) extends TableFunction(name) {
  override final def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    rowsWithStatistics(session, call).map(_._1)

  /** The rows of the function, each with the statistics that it shows, if there are any. */
  def rowsWithStatistics(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])]
}
