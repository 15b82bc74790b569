package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.{FileSourceStrategy, HadoopFsRelation, LogicalRelation}

import org.metastore.spark.tables.ReadPermission

/**
 * Drops files of Parquet directories beside Comet, as soon as Spark's own strategy has planned their scans.
 *
 * Comet replaces Spark's scans in physical rules that run before ours, and keeps their name and list of
 * files. Nodes that another strategy plans, such as a row policy's, are not planned here.
 */
final class ParquetScanStrategy(session: SparkSession) extends SparkStrategy {

  private lazy val isBesideComet =
    session.sparkContext.getConf.get("spark.plugins", "").contains("CometPlugin")

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalOperation(_, _, relation: LogicalRelation)
        if isBesideComet && isOurs(relation) && isUnclaimed(plan) =>
      val planned = FileSourceStrategy(plan)
      ScanPlanner.recover("A query", planned)(planned.map(new PhysicalScanRule(session).prune))
    case _ => Nil
  }

  private def isOurs(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation => ScanFormats.findTableWithLog(files, None).isEmpty && isPermitted(files)
    case _ => false
  }

  private def isPermitted(files: HadoopFsRelation): Boolean =
    ScanMark.permit(files).isDefined

  private def isUnclaimed(plan: LogicalPlan): Boolean =
    ScanPlanner.recover("A query", false)(ReadPermission.leavesPlanning(session, plan))
}
