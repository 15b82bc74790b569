package org.metastore.spark.tables

import java.util.Locale

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.sources.DataSourceRegister

import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.objects.TableIdentity

/** Finds the table format of a table or relation of Spark. */
object TableFormats {

  /** Every table format. */
  val all: Seq[TableFormat] = Seq(IcebergTable, DeltaTable, HudiTable, ParquetTable)

  /** Whether a text is the location of a table rather than its name. Python has the same rule. */
  def isLocation(text: String): Boolean = !text.contains('`') && (text.contains('/') || text.startsWith("."))

  private val V1Class = "org.apache.spark.sql.connector.catalog.V1Table"

  /** The table that a catalog loads. */
  def open(table: Table): Option[LakeTable] = first(_.open(table))

  /** The table of an analyzed relation without aliases. */
  def open(relation: LogicalPlan): Option[LakeTable] = relation match {
    case v2: DataSourceV2Relation => open(v2.table)
    case v1: LogicalRelation => first(_.open(v1))
    case _ => None
  }

  /** The table of a relation, loaded anew past the cache of its catalog. */
  def openUncached(relation: DataSourceV2Relation): Option[LakeTable] = first(_.openUncached(relation))

  /** The name of the reader of a table that is of one of the formats, but that we cannot open. */
  def otherReader(table: Table): Option[String] = first(_.otherReader(table))

  /** Whether a table shows metadata of another one. */
  def isMetadataTable(table: Table): Boolean = all.exists(_.isMetadataTable(table))

  private def first[T](ask: TableFormat => Option[T]): Option[T] = Indexed.firstAnswer(all)(ask)

  /** The identity of a table that a catalog loads, without listing its files. */
  def identity(session: SparkSession, table: Table): Option[TableIdentity] = open(table) match {
    case Some(opened) => Some(opened.identity)
    case None => identityByLocation(session, table)
  }

  private def identityByLocation(session: SparkSession, table: Table): Option[TableIdentity] =
    for {
      format <- format(table)
      location <- Reflection.call[CatalogTable](table, "v1Table").storage.locationUri
    } yield {
      val root = LakeTable.qualify(new Path(location), session)
      TableIdentity(format, LakeTable.uuidOf(root), root.toString, root.toString)
    }

  /** The format of a table that a catalog loads, without asking the table for anything. */
  def format(table: Table): Option[String] = {
    def provider = Option(table.properties.get(TableCatalog.PROP_PROVIDER))
    all.find(_.is(table)) match {
      case Some(format) => Some(format.name)
      case None if table.getClass.getName == V1Class => provider.flatMap(formatOfProvider)
      case None => None
    }
  }

  /** The format of a provider in the session's catalog; None if its tables are those of a plug-in. */
  def formatOfProvider(provider: String): Option[String] = {
    val name = provider.toLowerCase(Locale.ROOT)
    Optional.when(providers(name))(name)
  }

  private lazy val providers = Indexed.set(all.filter(_.isProvider))(_.name)

  /** The format whose files a name such as `` parquet.`/path` `` reads without a catalog. */
  def formatOfPath(name: Seq[String]): Option[String] = name match {
    case Seq(format, path) if path.contains('/') => formatOfProvider(format)
    case _ => None
  }

  /** The relation of such a name, where Spark resolves it for its own file formats alone. */
  def atPath(session: SparkSession, name: Seq[String]): Option[LogicalPlan] =
    for (format <- formatOfPath(name) if readers(format))
      yield session.read.format(format).load(name.last).queryExecution.analyzed

  private lazy val readers = Indexed.set(all.filter(_.needsReader))(_.name)

  /** Whether tables of a format have log files, which may change any value of a data file's rows. */
  def hasLogFiles(format: String): Boolean = withLogFiles(format)

  private lazy val withLogFiles = Indexed.set(all.filter(_.description.hasLogFiles))(_.name)

  /**
   * Whether a relation of any format reads by a column's path the column that the statistics know by a key.
   */
  def readByKey(relation: HadoopFsRelation, path: Seq[String], key: String): Boolean =
    all.forall(_.readsByKey(relation, path, key))

  /** A relation of any format with only the data files whose rows have these versions, by location. */
  def withVersions(relation: HadoopFsRelation, versions: Map[Path, Long]): Option[HadoopFsRelation] =
    first(_.withVersions(relation, versions))

  /** A noun phrase for the tables that can be analyzed. */
  def kinds: String = {
    val (plugins, builtIn) = all.partition(_.description.packages.nonEmpty)
    val tables = listed(plugins.map(_.title), "or")
    val files = listed(builtIn.map(_.title), "or")
    s"${withArticle(tables)} table with data, or a directory of $files"
  }

  /** A noun phrase for a relation that cannot be analyzed. */
  def describe(relation: LogicalPlan): String = relation match {
    case v1: LogicalRelation => v1.relation match {
        case HadoopFsRelation(_, _, _, _, files: DataSourceRegister, _) => filesOf(files.shortName())
        case other => s"a table of ${other.getClass.getSimpleName}"
      }
    case v2: DataSourceV2Relation => v2.table match {
        case files: FileTable => filesOf(files.formatName)
        case other => s"a table of ${otherReader(other).getOrElse(other.getClass.getSimpleName)}"
      }
    case other => other.nodeName
  }

  private def filesOf(format: String): String = s"${format.toUpperCase(Locale.ROOT)} files"

  /** The ways to name a table by its path, as a part of a sentence. */
  def pathForms(path: String): String = {
    val (byPath, byName) = all.partition(_.hasPaths)
    val paths = byPath.map(format => s"${format.name}.`$path`")
    val names = byName.map(format => s", ${withArticle(format.title)} table by the name in its catalog")
    listed(paths, "or") + names.mkString
  }

  private def withArticle(text: String): String = s"${if ("AEIOU".contains(text.head)) "an" else "a"} $text"

  private def listed(texts: Seq[String], last: String): String =
    if (texts.length < 2) texts.mkString
    else s"${texts.init.mkString(", ")} $last ${texts.last}"
}
