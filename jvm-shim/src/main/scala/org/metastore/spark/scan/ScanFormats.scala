package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.tables.ParquetTable

/** The table formats whose scans are planned: the one place in `scan` where formats are named. */
private[scan] object ScanFormats {
  private val all: Seq[ScanFormat] = Seq(IcebergAdapter, DeltaScan, HudiScan, ParquetScan)

  private val withLog = all.filter(_.hasLog)

  /** The adapters of formats that have relations of their own. */
  val adapters: Seq[RelationAdapter] = all.flatMap(_.adapter)

  /** The table behind a file relation; None where it is of no format that we know. */
  def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(all)(_.findTable(relation, label))

  /** The table behind the relation of a physical scan that was marked with its root. */
  def findMarkedTable(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(all)(_.findMarkedTable(relation, root, label))

  /** The table behind a file relation, if a log says which data files it has. */
  def findTableWithLog(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Indexed.firstAnswer(withLog)(_.findTable(relation, label))

  /** The name of the format of a file relation. */
  def formatName(relation: HadoopFsRelation): String =
    findTableWithLog(relation, None) match {
      case Some(table) => table.id.format
      case None => ParquetTable.name
    }

  /** As `FileScan.recognizable`, where there is no table at hand. */
  def recognizable(fixed: FixedFileIndex, relation: HadoopFsRelation): FileIndex = {
    val original = FileScan.withLocation(relation, fixed.delegate)
    findTableWithLog(original, None) match {
      case Some(table) => table.recognizable(fixed)
      case None => fixed
    }
  }

  /** Lets every format choose files itself, where our rule comes before its own. */
  def prepareRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan = {
    var prepared = plan
    for (format <- all) prepared = format.prepareRelations(prepared, session)
    prepared
  }

  /** As `ScanFormat.isOfCommand`. */
  def isOfCommand(query: LogicalPlan): Boolean = all.exists(_.isOfCommand(query))

  /** As `ScanFormat.isPinned`. */
  def isPinned(relation: HadoopFsRelation): Boolean = all.exists(_.isPinned(relation))

  /** As `ScanFormat.countsRows`. */
  def countsRows(expression: Expression): Boolean = all.exists(_.countsRows(expression))

  /** As `ScanFormat.findsFiles`. */
  def findsFiles(subquery: LogicalPlan, target: Option[Table]): Boolean =
    all.exists(_.findsFiles(subquery, target))

  /** As `ScanFormat.prepareTarget`, by the format of the target. */
  def prepareTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan = {
    val prepared = all.iterator.map(_.prepareTarget(command, planner)).find(_ ne command)
    prepared.getOrElse(command)
  }
}
