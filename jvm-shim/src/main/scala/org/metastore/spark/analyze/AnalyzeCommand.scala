package org.metastore.spark.analyze

import scala.collection.JavaConverters._
import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.execution.command.{AnalyzeTableCommand, LeafRunnableCommand}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.python.{AttachedPython, PythonStatement}
import org.metastore.spark.reason.{MetastoreException, SqlName}
import org.metastore.spark.tables.{Catalogs, Namespaces, TableLookup}

/** `ANALYZE TABLE` of a table that is ours: Python runs it, and its report is the result. */
final case class AnalyzeCommand(statement: AnalyzeStatement) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = AnalyzeReport.attributes

  override def run(session: SparkSession): Seq[Row] = {
    val report = AnalyzeCommand.analyze(session, statement)
    CatalogExport.renew(session, statement.table)
    Seq(report)
  }
}

object AnalyzeCommand {

  /** Analyzes one table. Python reads its files without a plan of Spark, so permission is checked here. */
  def analyze(session: SparkSession, statement: AnalyzeStatement): Row =
    AnalyzeReport.row(run(session, statement))

  /** Analyzes one table automatically; false if another driver is analyzing it. */
  def analyzeInTurn(session: SparkSession, statement: AnalyzeStatement): Boolean =
    !run(session, statement.copy(inTurn = true)).isNull

  private def run(session: SparkSession, statement: AnalyzeStatement): JsonNode = {
    MetastoreConf.requireValid(session, Set("analyze"))
    TableLookup.resolve(session, statement.table)
    AttachedPython.run(session, statement)
  }
}

/**
 * `ANALYZE TABLES IN db`: analyzes every table of the namespace that is ours and returns a row for each.
 * Spark analyzes the other tables, in its own catalog alone. A table that fails, or cannot even be loaded,
 * does not stop the others: its row has the reason in `refused`.
 */
final case class AnalyzeTablesCommand(catalog: TableCatalog, namespace: Seq[String], noScan: Boolean)
  extends LeafRunnableCommand {
  override val output: Seq[Attribute] = AnalyzeReport.attributes

  override def run(session: SparkSession): Seq[Row] = {
    MetastoreConf.requireValid(session, Set("analyze"))
    tables.sortBy(_.name).flatMap(analyze(session, _))
  }

  /** Analyzes a table; None if it is Spark's. */
  private def analyze(session: SparkSession, table: Identifier): Option[Row] = {
    val name = SqlName(catalog.name +: table.namespace.toSeq :+ table.name)
    try {
      if (AnalyzeScope.isOurs(session, catalog.loadTable(table)))
        Some(AnalyzeCommand.analyze(session, statement(name)))
      else {
        analyzeBySpark(session, table)
        None
      }
    } catch {
      case NonFatal(e) => Some(AnalyzeReport.failed(name, MetastoreException.firstLine(e)))
    }
  }

  /** The namespace's tables. Raises Spark's error if the namespace is missing. */
  private def tables: Seq[Identifier] =
    try catalog.listTables(namespace.toArray).toSeq
    catch {
      case NonFatal(e) if Namespaces.isMissing(catalog, namespace.toArray, e) =>
        throw new NoSuchNamespaceException((catalog.name +: namespace).toArray)
    }

  // Spark passes over the tables of its catalog that it cannot analyze, too.
  private def analyzeBySpark(session: SparkSession, table: Identifier): Unit =
    if (catalog.name == Catalogs.SessionCatalog)
      Try(AnalyzeTableCommand(TableIdentifier(table.name, table.namespace.lastOption), noScan).run(session))

  private def statement(table: String) = AnalyzeStatement(table, None, allColumns = false, noScan, Map.empty)
}

/** The report of one ANALYZE as a row. */
object AnalyzeReport {
  private val schema = StructType.fromDDL(
    "table STRING, snapshot STRING, files BIGINT, files_read BIGINT, files_total BIGINT, rows BIGINT, columns BIGINT, " +
      "seconds DOUBLE, refused ARRAY<STRING>, format STRING, bytes_read BIGINT, objects BIGINT, committed BOOLEAN")

  def attributes: Seq[Attribute] = DataTypeUtils.toAttributes(schema)

  /** The row of a report that `metastore.AnalyzeReport.to_dict()` made. */
  def row(report: JsonNode): Row = {
    def number(name: String): java.lang.Long =
      if (report.hasNonNull(name)) Long.box(report.get(name).asLong) else null
    val snapshot = report.path("snapshot").asText(null)
    val refused = report.path("refused").asScala.toSeq.map(refusal)
    Row(
      report.path("table").asText,
      snapshot,
      number("files"),
      number("files_read"),
      number("files_total"),
      number("rows"),
      number("columns"),
      report.path("seconds").asDouble,
      refused,
      report.path("format").asText,
      number("bytes_read"),
      number("objects"),
      report.path("committed").asBoolean)
  }

  private def refusal(entry: JsonNode): String = s"${subject(entry.path(0).asText)}: ${entry.path(1).asText}"

  /** The subject of a refusal, quoted if it has a colon: readers cut the text at the first colon. */
  private def subject(text: String): String =
    if (text.contains(": ") || text.startsWith("\"")) "\"" + text.replace("\"", "\"\"") + "\""
    else text

  /** The row of a table that could not be analyzed. */
  def failed(table: String, reason: String): Row =
    Row(table, null, null, null, null, null, null, null, Seq(reason), null, null, null, null)
}

/**
 * One ANALYZE of one table, for the Python side.
 *
 * @param columns   the columns of FOR COLUMNS; `None` if the clause is missing
 * @param partition the values of PARTITION by column; null is the partition of nulls, and `None`, a column
 *                  without a value, stands for every partition
 * @param inTurn    whether it does nothing while another driver analyzes the same table
 */
final case class AnalyzeStatement(
    table: String,
    columns: Option[Seq[String]],
    allColumns: Boolean,
    noScan: Boolean,
    partition: Map[String, Option[String]],
    inTurn: Boolean = false,
    override val isWaitedFor: Boolean = true)
  extends PythonStatement {

  override def isInteractive: Boolean = !inTurn

  override protected def fill(node: ObjectNode): Unit = {
    node.put("all_columns", allColumns).put("noscan", noScan).put("in_turn", inTurn)
    for (names <- columns) {
      val array = node.putArray("columns")
      for (name <- names) array.add(name)
    }
    val partitionColumns = node.putArray("partition_columns")
    for (name <- partition.keys) partitionColumns.add(name)
    val partitionValues = node.putObject("partition")
    for ((name, Some(value)) <- partition) partitionValues.put(name, value)
  }
}
