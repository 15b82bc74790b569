package org.metastore.spark.auto

import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, V2CommandExec}
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.tables.TableFormats

/**
 * The table of a catalog that a command has committed to. It is not always a `WrittenTable`: a DELETE of
 * whole files commits, too, but writes no data file, and so starts no ANALYZE.
 */
private[auto] object CommittedTable {

  /**
   * Refreshes the catalog's cached table after a command committed to another object of it. The two differ if
   * the catalog dropped the table from its cache while a long command ran, and an automatic ANALYZE loaded it
   * again. Later queries would not see the commit.
   */
  def refreshCached(plan: SparkPlan): Unit =
    for {
      relation <- targetOf(plan)
      catalog <- relation.catalog
      identifier <- relation.identifier
    } {
      def cached = catalog.asInstanceOf[TableCatalog].loadTable(identifier)
      TableFormats.all.foreach(_.refreshCached(RowLevelTarget.tableOf(relation.table), cached))
    }

  private def targetOf(plan: SparkPlan): Option[DataSourceV2Relation] = plan match {
    case command: V2CommandExec => command.logicalLink.flatMap(targetOf)
    case _ => None
  }

  private def targetOf(command: LogicalPlan): Option[DataSourceV2Relation] = {
    val target = command match {
      case write: V2WriteCommand => Some(write.table)
      case delete: DeleteFromTable => Some(delete.table)
      case _ => None
    }
    target.flatMap(_.collectFirst { case relation: DataSourceV2Relation => relation })
  }
}
