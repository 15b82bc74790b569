package org.metastore.spark.analyze

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{ResolvedNamespace, ResolvedTable, UnresolvedTableOrView}
import org.apache.spark.sql.catalyst.plans.logical.{AnalyzeColumn, AnalyzeTable, AnalyzeTables, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Table, TableCatalog}
import org.apache.spark.sql.execution.{command => stock}
import org.apache.spark.sql.execution.command.{
  AnalyzeColumnCommand, AnalyzePartitionCommand, AnalyzeTableCommand
}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.SqlName
import org.metastore.spark.sql.PartitionClause
import org.metastore.spark.tables.{Catalogs, TableFormats, TableLookup}

/** Takes over ANALYZE of the tables that are ours, before Spark refuses it for them; everything else stays Spark's. */
final class AnalyzeRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case AnalyzeTable(OurTable(name), partition, noScan) => command(name, noScan, partition)
    case columns @ AnalyzeColumn(OurTable(name), names, all) =>
      command(name, names, all, PartitionClause.find(columns))
    case AnalyzeTableCommand(OurName(name), noScan) => command(name, noScan, Map.empty)
    case AnalyzePartitionCommand(OurName(name), partition, noScan) => command(name, noScan, partition)
    case columns @ AnalyzeColumnCommand(OurName(name), names, all) =>
      command(name, names, all, PartitionClause.find(columns))
    case AnalyzeTables(namespace: ResolvedNamespace, noScan) =>
      all(namespace.catalog, namespace.namespace, noScan).getOrElse(plan)
    case stock.AnalyzeTablesCommand(database, noScan) =>
      val namespace = database.getOrElse(session.sessionState.catalog.getCurrentDatabase)
      all(Catalogs(session).catalog(Catalogs.SessionCatalog), Seq(namespace), noScan).getOrElse(plan)
    case other => other
  }

  /** The name of a table that is ours: found in a catalog, or a path. */
  private object OurTable {
    def unapply(table: LogicalPlan): Option[String] = table match {
      case found: ResolvedTable
          if AnalyzeScope.isOurs(
            session,
            found.table) || TableFormats.all.exists(_.isMetadataTable(found.table)) =>
        Some(SqlName(found.catalog.name +: found.identifier.namespace.toSeq :+ found.identifier.name))
      case unknown: UnresolvedTableOrView =>
        TableFormats.ofPath(unknown.multipartIdentifier).map(_ => SqlName(unknown.multipartIdentifier))
      case _ => None
    }
  }

  private object OurName {
    def unapply(table: TableIdentifier): Option[String] =
      if (AnalyzeScope.isOurs(session, table)) Some(SqlName(table.nameParts)) else None
  }

  private def command(name: String, noScan: Boolean, partition: Map[String, Option[String]]): LogicalPlan =
    AnalyzeCommand(AnalyzeStatement(name, None, allColumns = false, noScan, partition))

  private def command(
      name: String,
      columns: Option[Seq[String]],
      allColumns: Boolean,
      partition: Map[String, Option[String]]): LogicalPlan =
    AnalyzeCommand(AnalyzeStatement(
      name,
      columns.filter(_ => !allColumns),
      allColumns,
      noScan = false,
      partition))

  private def all(catalog: CatalogPlugin, namespace: Seq[String], noScan: Boolean): Option[LogicalPlan] =
    catalog match {
      case tables: TableCatalog if AnalyzeScope.isOurs(session, tables, namespace) =>
        Some(AnalyzeTablesCommand(tables, namespace, noScan))
      case _ => None
    }
}

/** Names the columns for which Spark has no type, where ANALYZE meets such a table: Spark says only which type it is. */
final class AnalyzableColumnsRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case AnalyzeTable(table: UnresolvedTableOrView, _, _) =>
        TableLookup.requireReadable(session, table.multipartIdentifier)
      case AnalyzeColumn(table: UnresolvedTableOrView, _, _) =>
        TableLookup.requireReadable(session, table.multipartIdentifier)
      case _ =>
    }
    plan
  }
}

/** Whose ANALYZE a table gets: ours for the formats of `spark.metastore.analyze.formats`, Spark's for all others. */
object AnalyzeScope {

  // Of a table that we cannot open our ANALYZE says why; Spark's would say that it has none for such tables.
  def isOurs(session: SparkSession, table: Table): Boolean =
    TableFormats.otherReader(
      table).isDefined || TableFormats.format(table).exists(MetastoreConf.of(session).analyzeFormats.contains)

  /** Whose ANALYZE a table gets that Spark knows by what its own catalog holds. */
  def isOurs(session: SparkSession, table: TableIdentifier): Boolean =
    Try(session.sessionState.catalog.getTableMetadata(table)).toOption.flatMap(
      _.provider).flatMap(TableFormats.ofProvider)
      .exists(MetastoreConf.of(session).analyzeFormats.contains)

  /** Whose ANALYZE TABLES a namespace gets: Spark's where no table is ours. */
  def isOurs(session: SparkSession, catalog: TableCatalog, namespace: Seq[String]): Boolean =
    isOfFormat(session, catalog) || Try(catalog.listTables(namespace.toArray)).toOption.exists(_.exists {
      table =>
        Try(catalog.loadTable(table)).toOption.exists(isOurs(session, _))
    })

  private def isOfFormat(session: SparkSession, catalog: TableCatalog): Boolean =
    TableFormats.all.exists(format =>
      format.isCatalog(catalog) && MetastoreConf.of(session).analyzeFormats.contains(format.name))
}
