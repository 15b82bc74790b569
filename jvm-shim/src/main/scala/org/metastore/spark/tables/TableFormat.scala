package org.metastore.spark.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** A table format: all that generic code asks of one, so that no generic code names one. */
trait TableFormat {

  /** As in `contract/formats.json`. */
  def name: String

  /** The format's entry in the contract. */
  final lazy val description: FormatDescription = FormatDescription.byName(name)

  /** The name as people write it. */
  final def title: String = description.title

  /** Whether Spark's table is one of this format. */
  def is(table: Table): Boolean

  /** The table that a catalog loads, where that alone tells of it. */
  def open(table: Table): Option[LakeTable] = None

  /** Makes a table that a catalog has cached as new as another object of the same table, to which a command committed. */
  def refreshCached(committed: Table, cached: => Table): Unit = ()

  /** The table of a relation, loaded anew, which its catalog does not keep; None where its catalog keeps none. */
  def openUncached(relation: DataSourceV2Relation): Option[LakeTable] = None

  /** The table that a relation of Spark's older kind reads. */
  def open(relation: LogicalRelation): Option[LakeTable] = None

  /** Whether a relation reads by a column's path what the statistics have under a key. */
  def readsByKey(relation: HadoopFsRelation, path: Seq[String], key: String): Boolean = true

  /** Whether a relation of Spark's older kind reads a table of this format. */
  def reads(relation: LogicalRelation): Boolean = false

  /** Whether Spark's table shows metadata of a table of this format. */
  def isMetadataTable(table: Table): Boolean = false

  /** Whether a catalog has tables of this format alone. */
  def isCatalog(catalog: CatalogPlugin): Boolean = false

  /** Whether the session's catalog tells its tables by the name of the format. */
  def isProvider: Boolean = false

  /** Whether a query may name a table by its path, and whether Spark's reader has to be asked for such a name. */
  def hasPaths: Boolean = true
  def needsReader: Boolean = false

  /** Whether an exception means that there is no such table, or that the table's files cannot be read. */
  def isNotFound(e: Exception): Boolean = false
  def isUnreadable(e: Exception): Boolean = false

  /** Whether a catalog's own exception means that it has no such table. */
  def isMissing(e: Throwable): Boolean = false

  /** The reader of a table of this format that we cannot open. */
  def otherReader(table: Table): Option[String] = None

  /** Columns that Spark has no type for, each with its type: it reads no column of such a table. */
  def unreadableColumns(table: Table): Seq[String] = Nil

  /** Beginnings of the class names of its own rules, which are nobody's policies. */
  def rules: Seq[String] = Nil

  /** Names of plan nodes that rewrite rows; whether a node is one of its commands, which read their target themselves. */
  def rowLevelNodes: Set[String] = Set.empty
  def isCommand(node: LogicalPlan): Boolean = false

  /** Whether a command of its own writes data files. */
  def isWrite(command: LogicalPlan): Boolean = false

  /** The name of its sink for streams, where planners see no command of it. */
  def sink: Option[String] = None

  /** The properties of a table that a writer with such options names by its path, where that tells of them. */
  def propertiesAt(session: SparkSession, path: Path, options: Map[String, String]): Map[String, String] =
    Map.empty

  /** The table of which a stored procedure that is called makes other data files live. */
  def writtenBy(call: LogicalPlan): Option[(TableCatalog, Identifier)] = None

  /** Whether a catalog holds tables for the time of one of its own jobs. */
  def isTemporary(catalog: CatalogPlugin): Boolean = false

  /** Settings that cost-based optimization needs. */
  def optimizerDefaults: Map[String, String] = Map.empty

  /** The setting that lets it answer a query from metadata, without a scan. */
  def metadataAnswers: Option[String] = None
}
