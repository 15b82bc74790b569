package org.metastore.spark.analyze

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql.{MetastoreException, QuotedName}

/** `ANALYZE TABLE` of a table that is ours: done in Python, its report is the answer. */
final case class AnalyzeCommand(statement: AnalyzeStatement) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = AnalyzeReport.attributes

  override def run(session: SparkSession): Seq[Row] = Seq(AnalyzeReport.row(AttachedPython.run(session, statement)))
}

/**
 * `ANALYZE TABLES IN db`: every table of the namespace that is ours, one row each. A table that fails does not stop the
 * others: its row says why in `refused`.
 */
final case class AnalyzeTablesCommand(catalog: TableCatalog, namespace: Seq[String], noScan: Boolean) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = AnalyzeReport.attributes

  override def run(session: SparkSession): Seq[Row] = {
    val owned = catalog.listTables(namespace.toArray).toSeq.sortBy(_.name)
      .filter(table => Ownership.ofMetastore(session, catalog.loadTable(table)))
    owned.map { table =>
      val name = QuotedName(catalog.name +: table.namespace.toSeq :+ table.name)
      val statement = AnalyzeStatement(name, None, allColumns = false, noScan, Map.empty)
      try AnalyzeReport.row(AttachedPython.run(session, statement)) catch {
        case e: MetastoreException => AnalyzeReport.failed(name, e.getMessage)
        case NonFatal(e) => AnalyzeReport.failed(name, MetastoreException.firstLine(e))
      }
    }
  }
}

/** The report of one ANALYZE as a row. */
object AnalyzeReport {
  private val schema = StructType.fromDDL(
    "table STRING, snapshot STRING, files BIGINT, files_read BIGINT, files_total BIGINT, rows BIGINT, columns BIGINT, " +
      "seconds DOUBLE, refused ARRAY<STRING>, format STRING, bytes_read BIGINT, objects BIGINT, committed BOOLEAN")

  def attributes: Seq[Attribute] = DataTypeUtils.toAttributes(schema)

  /** The row of what `metastore.AnalyzeReport.to_dict()` says. */
  def row(report: JsonNode): Row = {
    def number(name: String): java.lang.Long = Option(report.get(name)).filterNot(_.isNull).map(n => Long.box(n.asLong)).orNull
    val snapshot = Option(report.get("snapshot")).filterNot(_.isNull).map(_.asText).orNull
    val refused = report.path("refused").elements.asScala.map(r => s"${r.path(0).asText}: ${r.path(1).asText}").toSeq
    Row(report.path("table").asText, snapshot, number("files"), number("files_read"), number("files_total"), number("rows"),
      number("columns"), report.path("seconds").asDouble, refused, report.path("format").asText, number("bytes_read"),
      number("objects"), report.path("committed").asBoolean)
  }

  /** The row of a table that could not be analyzed. */
  def failed(table: String, why: String): Row =
    Row(table, null, null, null, null, null, null, null, Seq(why), null, null, null, null)
}
