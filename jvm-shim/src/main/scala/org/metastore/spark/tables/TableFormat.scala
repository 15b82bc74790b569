package org.metastore.spark.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** A table format. Generic code uses formats through this trait, and names none. */
trait TableFormat {

  /** The name in `contract/formats.json`. */
  def name: String

  /** The format's entry in the contract. */
  final lazy val description: FormatDescription = FormatDescription.byName(name)

  /** The name as people write it. */
  final def title: String = description.title

  /** Whether Spark's table is one of this format. */
  def is(table: Table): Boolean

  /** The table that a catalog loads; None if only a relation has all of it. */
  def open(table: Table): Option[LakeTable] = None

  /** Refreshes a catalog's cached table after a command committed to another object of the same table. */
  def refreshCached(committed: Table, cached: => Table): Unit = ()

  /**
   * The table of a relation, loaded anew past the cache of its catalog; None if the catalog caches no tables.
   */
  def openUncached(relation: DataSourceV2Relation): Option[LakeTable] = None

  /** The table that a relation of Spark's older kind reads. */
  def open(relation: LogicalRelation): Option[LakeTable] = None

  /** Whether a relation reads by a column's path the column that the statistics know by a key. */
  def readsByKey(relation: HadoopFsRelation, path: Seq[String], key: String): Boolean = true

  /**
   * The relation with only the data files whose rows have these versions (`DataFile.modified`), by location;
   * None if files of this format have none.
   */
  def withVersions(relation: HadoopFsRelation, versions: Map[Path, Long]): Option[HadoopFsRelation] = None

  /** Whether a relation of Spark's older kind reads a table of this format. */
  def reads(relation: LogicalRelation): Boolean = false

  /** Whether Spark's table shows metadata of a table of this format. */
  def isMetadataTable(table: Table): Boolean = false

  /** Whether a catalog has tables of this format alone. */
  def isCatalog(catalog: CatalogPlugin): Boolean = false

  /** Whether tables of the session's catalog have the name of the format as their provider. */
  def isProvider: Boolean = false

  /** Whether a query may name a table by its path. */
  def hasPaths: Boolean = true

  /** Whether only Spark's reader resolves the path of a table. */
  def needsReader: Boolean = false

  /** Whether an exception means that the table is missing. */
  def isNotFound(e: Exception): Boolean = false

  /** Whether an exception means that the table's files cannot be read. */
  def isUnreadable(e: Exception): Boolean = false

  /** Whether a catalog's own exception means that it has no such table. */
  def isMissing(e: Throwable): Boolean = false

  /** The reader of a table of this format that we cannot open. */
  def otherReader(table: Table): Option[String] = None

  /** Columns that Spark has no type for, each with its type: it reads no column of such a table. */
  def unreadableColumns(table: Table): Seq[String] = Nil

  /** The prefixes of the class names of its own rules, which are no policies. */
  def rules: Seq[String] = Nil

  /** Names of plan nodes that rewrite rows. */
  def rowLevelNodes: Set[String] = Set.empty

  /** Whether a node is one of its commands, which read their target themselves. */
  def isCommand(node: LogicalPlan): Boolean = false

  /** Whether a command of its own writes data files. */
  def isWrite(command: LogicalPlan): Boolean = false

  /** The name of its sink for streams, where planners see no command of it. */
  def sink: Option[String] = None

  /** The properties of a table that a writer names by its path and options; empty if these do not suffice. */
  def propertiesAt(session: SparkSession, path: Path, options: Map[String, String]): Map[String, String] =
    Map.empty

  /** The table in which a call of a stored procedure replaces data files. */
  def writtenBy(call: LogicalPlan): Option[(TableCatalog, Identifier)] = None

  /** Whether a catalog holds tables for the time of one of its own jobs. */
  def isTemporary(catalog: CatalogPlugin): Boolean = false

  /** Settings that cost-based optimization needs. */
  def optimizerDefaults: Map[String, String] = Map.empty

  /** The setting that lets it answer a query from metadata, without a scan. */
  def metadataAnswers: Option[String] = None
}
