package org.metastore.spark.analyze

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

import org.metastore.spark.reason.{Optional, SqlName}
import org.metastore.spark.sql.PartitionClause
import org.metastore.spark.tables.{Catalogs, TableFormats, TableLookup}

/**
 * Takes over ANALYZE of the tables that are ours: Spark would refuse it. ANALYZE of other tables stays
 * Spark's.
 */
final class AnalyzeRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case AnalyzeTable(OurTable(name), partition, noScan) => command(name, noScan, partition)
    case AnalyzeTableCommand(OurName(name), noScan) => command(name, noScan, Map.empty)
    case AnalyzePartitionCommand(OurName(name), partition, noScan) => command(name, noScan, partition)
    case AnalyzeColumn(OurTable(name), names, all) =>
      command(name, names, all, PartitionClause.fromPlan(plan))
    case AnalyzeColumnCommand(OurName(name), names, all) =>
      command(name, names, all, PartitionClause.fromPlan(plan))
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
      case resolved: ResolvedTable if isOurs(resolved.table) =>
        Some(
          SqlName(resolved.catalog.name +: resolved.identifier.namespace.toSeq :+ resolved.identifier.name))
      case unknown: UnresolvedTableOrView =>
        val parts = unknown.multipartIdentifier
        Optional.when(TableFormats.formatOfPath(parts).isDefined)(SqlName(parts))
      case _ => None
    }
  }

  private def isOurs(table: Table): Boolean =
    AnalyzeScope.isOurs(session, table) || TableFormats.isMetadataTable(table)

  private object OurName {
    def unapply(table: TableIdentifier): Option[String] =
      Optional.when(AnalyzeScope.isOurs(session, table))(SqlName(table.nameParts))
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
      if (allColumns) None else columns,
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

/** Names the columns of a table for which Spark has no type: Spark's own error names only the type. */
final class AnalyzableColumnsRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case _: AnalyzeTable | _: AnalyzeColumn => TableLookup.requireReadable(session, plan)
      case _ =>
    }
    plan
  }
}
