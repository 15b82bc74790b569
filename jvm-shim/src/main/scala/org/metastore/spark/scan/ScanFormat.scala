package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
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

  /** Whether a query is one of those by which the format runs an UPDATE, DELETE or MERGE. */
  def isOfCommand(query: LogicalPlan): Boolean = false

  /** Whether a relation lists the same files whenever it is read. */
  def isPinned(relation: HadoopFsRelation): Boolean = false

  /** Whether an expression is its one child, and counts the rows of a command's source, which makes it not deterministic. */
  def countsRows(expression: Expression): Boolean = false

  /**
   * Whether a sub-query asks which data files of a command's target hold rows to change: files without such rows may be
   * left out of it.
   *
   * @param target None: whether it asks for the data files of any table
   */
  def findsFiles(subquery: LogicalPlan, target: Option[Table]): Boolean = false

  /**
   * Prepares the scans of a command's own target: the optimizer does not get the format's numbers, and files are left out only
   * where the format needs no more than the rows that the command changes.
   */
  def prepareTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan = command
}
