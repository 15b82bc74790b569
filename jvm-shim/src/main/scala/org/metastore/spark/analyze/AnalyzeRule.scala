package org.metastore.spark.analyze

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedNamespace, ResolvedTable}
import org.apache.spark.sql.catalyst.plans.logical.{AnalyzeColumn, AnalyzeTable, AnalyzeTables, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.TableCatalog

import org.metastore.spark.sql.{PartitionOfColumns, QuotedName}

/**
 * Takes over ANALYZE of the tables that are ours, before Spark refuses it for them; everything else stays Spark's.
 *
 * A resolution rule, because the table must be known and Spark's final check, which refuses all tables of other catalogs,
 * must not have run yet.
 */
final class AnalyzeRule(session: SparkSession) extends Rule[LogicalPlan] {

  private val SessionCatalog = "spark_catalog"

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case AnalyzeTable(table: ResolvedTable, partition, noScan) if isOurs(table) =>
      command(table, None, allColumns = false, noScan, partition)
    case analyze @ AnalyzeColumn(table: ResolvedTable, columns, allColumns) if isOurs(table) =>
      command(table, columns, allColumns, noScan = false, PartitionOfColumns.of(analyze))
    case AnalyzeTables(namespace: ResolvedNamespace, noScan) => namespace.catalog match {
      case catalog: TableCatalog if catalog.name != SessionCatalog && Ownership.ofMetastore(session, catalog, namespace.namespace) =>
        AnalyzeTablesCommand(catalog, namespace.namespace, noScan)
      case _ => plan
    }
    case other => other
  }

  private def isOurs(table: ResolvedTable): Boolean = Ownership.ofMetastore(session, table.table)

  private def command(
      table: ResolvedTable, columns: Option[Seq[String]], allColumns: Boolean, noScan: Boolean,
      partition: Map[String, Option[String]]): LogicalPlan = {
    val name = QuotedName(table.catalog.name +: table.identifier.namespace.toSeq :+ table.identifier.name)
    AnalyzeCommand(AnalyzeStatement(name, columns.filter(_ => !allColumns), allColumns, noScan, partition))
  }
}
