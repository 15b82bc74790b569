package org.metastore.spark.tables

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Finds the table format behind what Spark knows of a table. */
object LakeTables {

  /** The table that a catalog loads. */
  def of(table: Table): Option[LakeTable] =
    if (IcebergTable.is(table)) Some(IcebergTable(table)) else if (DeltaTable.is(table)) Some(DeltaTable(table)) else None

  /** The table of an analyzed relation without aliases. */
  def of(relation: LogicalPlan): Option[LakeTable] = relation match {
    case v2: DataSourceV2Relation => of(v2.table)
    case v1: LogicalRelation => v1.relation match {
      case files: HadoopFsRelation if DeltaTable.is(files) => Some(DeltaTable(files))
      case _ => None
    }
    case _ => None
  }

  /** The format of a table that a catalog loads, without asking the table for anything. */
  def format(table: Table): Option[String] =
    if (IcebergTable.is(table)) Some("iceberg") else if (DeltaTable.is(table)) Some("delta") else None
}
