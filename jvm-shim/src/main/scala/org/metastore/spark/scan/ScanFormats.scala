package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.tables.ParquetTable

/** The table formats whose scans are planned: the only file in `scan` that names them all. */
private[scan] object ScanFormats {
  private val all: Seq[ScanFormat] = Seq(IcebergAdapter, DeltaScan, HudiScan, ParquetScan)

  private val withLog = all.filter(_.hasLog)

  /** The adapters of formats that have relations of their own. */
  val adapters: Seq[RelationAdapter] = all.flatMap(_.adapter)

  /** Finds the table behind a file relation, or None if it has no supported format. */
  def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(all)(_.findTable(relation, label))

  /** Finds the table behind the relation of a physical scan that is marked with its root. */
  def findMarkedTable(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(all)(_.findMarkedTable(relation, root, label))

  /** Finds the table behind a file relation, if a log lists its data files. */
  def findTableWithLog(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(withLog)(_.findTable(relation, label))

  /** The name of the format of a file relation. */
  def formatName(relation: HadoopFsRelation): String =
    findTableWithLog(relation, None) match {
      case Some(table) => table.id.format
      case None => ParquetTable.name
    }

  /** An index of the table format's own class that answers as `fixed` does (see `FileScan.recognizable`). */
  def recognizable(fixed: FixedFileIndex, relation: HadoopFsRelation): FileIndex = {
    val original = FileScan.withLocation(relation, fixed.delegate)
    findTableWithLog(original, None) match {
      case Some(table) => table.recognizable(fixed)
      case None => fixed
    }
  }

  /** Lets every format choose files itself, if our rule runs before its own. */
  def prepareRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan = {
    var prepared = plan
    for (format <- all) prepared = format.prepareRelations(prepared, session)
    prepared
  }

  /** Whether a format runs an UPDATE, DELETE or MERGE by this query. */
  def isCommandQuery(query: LogicalPlan): Boolean = all.exists(_.isCommandQuery(query))

  /** Whether each read of a relation lists the same files. */
  def isPinned(relation: HadoopFsRelation): Boolean = all.exists(_.isPinned(relation))

  /** Whether an expression only counts rows (see `ScanFormat.countsRows`). */
  def countsRows(expression: Expression): Boolean = all.exists(_.countsRows(expression))

  /** Whether a sub-query finds the data files with rows to change, for a command on any table. */
  def findsFiles(subquery: LogicalPlan): Boolean = all.exists(_.findsFiles(subquery))

  /** Whether a sub-query finds the data files of this target with rows to change. */
  def findsFiles(subquery: LogicalPlan, target: Table): Boolean = all.exists(_.findsFiles(subquery, target))

  /** Prepares the scans of a command's target by the target's format (see `ScanFormat.prepareTarget`). */
  def prepareTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan = {
    val prepared = all.iterator.map(_.prepareTarget(command, planner)).find(_ ne command)
    prepared.getOrElse(command)
  }
}
