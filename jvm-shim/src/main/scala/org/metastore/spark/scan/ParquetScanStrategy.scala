package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.{FileSourceStrategy, HadoopFsRelation, LogicalRelation}

/**
 * Plans marked directories of Parquet files as Spark does, and drops files from their scans at once.
 *
 * Engines such as Comet replace Spark's scans in physical rules that run before ours. Their scans keep the name and the list of files.
 */
final class ParquetScanStrategy(session: SparkSession) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalOperation(_, _, relation: LogicalRelation) if isMarkedDirectory(relation) =>
      val planned = FileSourceStrategy(plan)
      ScanPlanner.orElse("A query", planned)(planned.map(new PhysicalScanRule(session).prune))
    case _ => Nil
  }

  private def isMarkedDirectory(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation => ScanMark.of(files).isDefined && FileScan.ofFormatWithLog(files, None).isEmpty
    case _ => false
  }
}
