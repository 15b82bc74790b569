package org.metastore.spark.sql.functions

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.VisibleText
import org.metastore.spark.sql._
import org.metastore.spark.tables.TableFormats

/** `metastore.tables([database])`: one row a table that has statistics. */
object TablesFunction extends TableFunction with Logging {
  override val name = "tables"
  override val arguments: Seq[Argument] = Seq(Argument("database", required = false))
  override val schema: StructType = StructType.fromDDL(
    "table STRING, format STRING, location STRING, snapshot STRING, current BOOLEAN, analyzed_at TIMESTAMP")
  override val meaning = "The tables of a database (db, cat.db; the current one if not given) that have statistics"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val (catalog, namespace) = TableLookup.namespace(session, call.optional("database").fold(Seq.empty[String])(parts(session, _)))
    catalog match {
      case tables: TableCatalog => listed(tables, namespace).sortBy(_.name).flatMap(analyzed(session, tables, _))
      case other => throw MetastoreException.invalidArgument("database", s"the catalog ${other.name} has no tables")
    }
  }

  private def parts(session: SparkSession, database: String): Seq[String] =
    try session.sessionState.sqlParser.parseMultipartIdentifier(database) catch {
      case _: ParseException => throw MetastoreException.invalidArgument("database", s"'$database' is not the name of a database")
    }

  private def listed(catalog: TableCatalog, namespace: Array[String]): Seq[Identifier] =
    try catalog.listTables(namespace).toSeq catch {
      case NonFatal(e) if Namespaces.isMissing(catalog, namespace, e) =>
        throw MetastoreException.databaseNotFound(catalog.name +: namespace.toSeq, Namespaces.siblings(catalog, namespace))
      case NonFatal(e) => throw MetastoreException.invalidArgument(
        "database", s"the tables of ${SqlName(catalog.name +: namespace.toSeq)} cannot be listed: ${MetastoreException.firstLine(e)}")
    }

  /** A table that cannot be loaded, or that this user may not read, is not a reason to hide the others. */
  private def analyzed(session: SparkSession, catalog: TableCatalog, table: Identifier): Option[InternalRow] = {
    val name = SqlName(catalog.name +: table.namespace.toSeq :+ table.name)
    try TableFormats.identity(session, catalog.loadTable(table))
      .filter(TableContext.store(session, _).manifest().isDefined).flatMap(_ => row(TableContext.of(session, name)))
    catch {
      // Plug-ins refuse with exceptions of their own.
      case NonFatal(e) =>
        logWarning(VisibleText(s"metastore.tables leaves out $name: ${MetastoreException.firstLine(e)}"))
        None
    }
  }

  private def row(analyzed: TableContext): Option[InternalRow] = analyzed.manifest.map { manifest =>
    val snapshot = analyzed.answeringSnapshot(analyzed.table.current, _ => true).orElse(manifest.latest)
    ResultRow.row(analyzed.name, analyzed.table.format, analyzed.table.location, snapshot.map(_.id), snapshot.exists(analyzed.isCurrent),
      snapshot.map(s => ValueText.timestamp(s.analyzedAt)))
  }
}
