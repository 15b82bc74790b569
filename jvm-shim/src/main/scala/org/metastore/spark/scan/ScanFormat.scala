package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

/** The planning of scans of one table format, beside its `TableFormat`. */
private[scan] trait ScanFormat {

  /** The adapter of the format's own relations, or None if Spark reads its tables as file relations. */
  def adapter: Option[RelationAdapter] = None

  /** Whether a log of the format lists the data files of a table; Spark lists the files of other formats. */
  def hasLog: Boolean = true

  /** Finds the table behind a file relation; None for other formats. */
  def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] = None

  /** Finds the table behind the relation of a physical scan that is marked with the table's root. */
  def findMarkedTable(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    findTable(relation, label)

  /** Lets the format choose files itself, if our rule runs before its own. */
  def prepareRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan = plan

  /** Whether the format runs an UPDATE, DELETE or MERGE by this query. */
  def isCommandQuery(query: LogicalPlan): Boolean = false

  /** Whether each read of a relation lists the same files. */
  def isPinned(relation: HadoopFsRelation): Boolean = false

  /** Whether an expression returns its child and counts rows of a command's source: it has a side effect. */
  def countsRows(expression: Expression): Boolean = false

  /** Whether a sub-query finds the data files with rows to change, for a command on any table. */
  def findsFiles(subquery: LogicalPlan): Boolean = false

  /** Whether a sub-query finds the data files of this target with rows to change: it may skip other files. */
  def findsFiles(subquery: LogicalPlan, target: Table): Boolean = false

  /**
   * Prepares the scans of a command's own target. The optimizer does not get the format's numbers. Files are
   * skipped only if the format needs no other rows than those that the command changes.
   */
  def prepareTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan = command
}
