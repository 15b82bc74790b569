package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

/** The planning of scans of one table format, beside its `TableFormat`. */
private[scan] trait ScanFormat {

  /** The adapter of the format's own relations; None where Spark reads its tables as file relations. */
  def adapter: Option[RelationAdapter] = None

  /** Whether a log of the format lists the data files of a table; Spark lists the files of other formats. */
  def hasLog: Boolean = true

  /** The table behind a file relation; None where it is no table of this format. */
  def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] = None

  /** The table behind the relation of a physical scan that was marked with the table's root. */
  def findMarkedTable(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    findTable(relation, label)

  /** Lets the format choose files itself, where our rule comes before its own. */
  def prepareRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan = plan

  /** Keeps the format's numbers of a command's own target away from the optimizer; every file of it is read. */
  def shieldTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan = command
}
