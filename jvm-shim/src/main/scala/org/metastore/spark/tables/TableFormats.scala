package org.metastore.spark.tables

import java.util.Locale

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.sources.DataSourceRegister

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{Reason, ReasonCode, ReasonedFailure}
import org.metastore.spark.statistics.objects.TableIdentity

/** A table format: all that generic code asks of one, so that no generic code names one. */
trait TableFormat {

  /** As in `contract/formats.json`. */
  def name: String

  private lazy val described = Contract.named(Contract.read("formats")).toMap.apply(name)

  /** As people write it. */
  final lazy val title: String = described.get("title").asText

  /** The releases whose members and meaning we know; none of what comes with Spark. */
  final lazy val oldest: String = described.path("oldest").asText
  final lazy val newest: String = described.path("newest").asText

  /** Whether files beside the data files may change any value of their rows. */
  final lazy val hasLogFiles: Boolean = described.path("log_files").asBoolean

  /** What rewrites `{table}` of `{catalog}` in the order of `{column}`. */
  final lazy val sortStatement: Option[String] = Option(described.get("sort")).map(_.asText)

  /** How the names of its classes begin, and a class that tells of its jar; none of what comes with Spark. */
  final lazy val packages: Seq[String] = Contract.texts(described, "packages")
  final lazy val knownClass: Option[String] = Option(described.get("shown_by")).map(_.asText)

  /** The release of one of its classes. */
  def release(c: Class[_]): Option[String] =
    Option(c.getPackage).flatMap(found => Option(found.getImplementationVersion))

  /** Whether Spark's table is one of this format. */
  def is(table: Table): Boolean

  /** The table that a catalog loads, where that alone tells of it. */
  def open(table: Table): Option[LakeTable] = None

  /** The table that a relation of Spark's older kind reads. */
  def open(relation: LogicalRelation): Option[LakeTable] = None

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

  /** Whether this was thrown because there is no such table, or because what a table is made of cannot be read. */
  def isNotFound(e: Exception): Boolean = false
  def isUnreadable(e: Exception): Boolean = false

  /** The name of the reader of a table of this format that we cannot open. */
  def otherReader(table: Table): Option[String] = None

  /** Columns that Spark has no type for, each with its type: it reads no column of such a table. */
  def unreadableColumns(table: Table): Seq[String] = Nil

  /** How the names of its own rules begin: these are nobody's policies. */
  def rules: Seq[String] = Nil

  /** Names of plan nodes that rewrite rows; whether a node is one of its commands, which read their target themselves. */
  def rowLevelNodes: Set[String] = Set.empty
  def isCommand(node: LogicalPlan): Boolean = false

  /** Whether a command of its own writes data files. */
  def isWrite(command: LogicalPlan): Boolean = false

  /** How the sink calls itself through which streams write, where that shows planners no command. */
  def sink: Option[String] = None

  /** The properties of a table that a writer with such options names by its path, where that tells of them. */
  def propertiesAt(session: SparkSession, path: Path, options: Map[String, String]): Map[String, String] =
    Map.empty

  /** The table of which a stored procedure that is called makes other data files live. */
  def writtenBy(call: LogicalPlan): Option[(TableCatalog, Identifier)] = None

  /** Whether a catalog holds tables for the time of one of its own jobs. */
  def isTemporary(catalog: CatalogPlugin): Boolean = false

  /** Settings without which cost-based optimization does harm. */
  def optimizerDefaults: Map[String, String] = Map.empty

  /** The setting that lets it answer a query from metadata, without a scan. */
  def metadataAnswers: Option[String] = None
}

/** Finds the table format behind what Spark knows of a table. */
object TableFormats {

  /** Every table format. */
  val all: Seq[TableFormat] = Seq(IcebergTable, DeltaTable, HudiTable, ParquetTable)

  /** Whether a text says where a table is, rather than its name; as in Python. */
  def isLocation(text: String): Boolean = !text.contains('`') && (text.contains('/') || text.startsWith("."))

  private val V1Class = "org.apache.spark.sql.connector.catalog.V1Table"

  /** The table that a catalog loads. */
  def of(table: Table): Option[LakeTable] = first(_.open(table))

  /** The table of an analyzed relation without aliases. */
  def of(relation: LogicalPlan): Option[LakeTable] = relation match {
    case v2: DataSourceV2Relation => of(v2.table)
    case v1: LogicalRelation => first(_.open(v1))
    case _ => None
  }

  /** The name of the reader of a table that is of one of the formats, but that we cannot open. */
  def otherReader(table: Table): Option[String] = first(_.otherReader(table))

  private def first[T](found: TableFormat => Option[T]): Option[T] =
    all.iterator.flatMap(found(_)).take(1).toList.headOption

  /** Which table it is that a catalog loads, without listing its files. */
  def identity(session: SparkSession, table: Table): Option[TableIdentity] =
    of(table).map(_.identity).orElse(for {
      format <- format(table)
      location <- Reflection.call[CatalogTable](table, "v1Table").storage.locationUri
      root = LakeTable.qualify(new Path(location), session)
    } yield TableIdentity(format, LakeTable.uuidOf(root), root.toString, root.toString))

  /** The format of a table that a catalog loads, without asking the table for anything. */
  def format(table: Table): Option[String] = all.find(_.is(table)).map(_.name).orElse(
    if (table.getClass.getName == V1Class)
      Option(table.properties.get(TableCatalog.PROP_PROVIDER)).flatMap(ofProvider)
    else None)

  /** The format of a table that the session's catalog says to be of a provider, where such tables are no plug-in's. */
  def ofProvider(provider: String): Option[String] =
    Some(provider.toLowerCase(Locale.ROOT)).filter(byProvider)

  private lazy val byProvider = all.filter(_.isProvider).map(_.name).toSet

  /** The format whose files a name such as `` parquet.`/path` `` reads without a catalog. */
  def ofPath(name: Seq[String]): Option[String] = name match {
    case Seq(format, path) if path.contains('/') => ofProvider(format)
    case _ => None
  }

  /** The relation of such a name, where Spark resolves it for its own file formats alone. */
  def atPath(session: SparkSession, name: Seq[String]): Option[LogicalPlan] = for {
    format <- ofPath(name) if all.exists(known => known.name == format && known.needsReader)
  } yield session.read.format(format).load(name.last).queryExecution.analyzed

  /** Whether a table of that format has files beside its data files which may change any value of their rows. */
  def hasLogFiles(format: String): Boolean = all.exists(known => known.name == format && known.hasLogFiles)

  /** What can be analyzed, as a part of a sentence. */
  def kinds: String = {
    val (plugins, own) = all.partition(_.packages.nonEmpty)
    s"${withArticle(listed(plugins.map(_.title), "or"))} table with data, or a directory of ${listed(own.map(_.title), "or")}"
  }

  /** What a relation is that is nothing of that, as a part of a sentence. */
  def describe(relation: LogicalPlan): String = relation match {
    case v1: LogicalRelation => v1.relation match {
        case HadoopFsRelation(_, _, _, _, files: DataSourceRegister, _) => ofFiles(files.shortName())
        case other => s"a table of ${other.getClass.getSimpleName}"
      }
    case v2: DataSourceV2Relation => v2.table match {
        case files: FileTable => ofFiles(files.formatName)
        case other => s"a table of ${otherReader(other).getOrElse(other.getClass.getSimpleName)}"
      }
    case other => other.nodeName
  }

  private def ofFiles(format: String): String = s"${format.toUpperCase(Locale.ROOT)} files"

  /** How a path is asked about, as a part of a sentence. */
  def pathForms(path: String): String = {
    val (byPath, byName) = all.partition(_.hasPaths)
    val named =
      byName.map(format => s", ${withArticle(format.title)} table by the name in its catalog")
    listed(byPath.map(format => s"${format.name}.`$path`"), "or") + named.mkString
  }

  private def withArticle(text: String): String = s"${if ("AEIOU".contains(text.head)) "an" else "a"} $text"

  private def listed(texts: Seq[String], last: String): String =
    if (texts.length < 2) texts.mkString else s"${texts.init.mkString(", ")} $last ${texts.last}"
}

/** A table format as it is on the class path; `version` is None where its jar does not tell. */
final case class Release(format: TableFormat, version: Option[String]) {

  /** Why its tables are left alone: it is older than any release whose members and meaning we know. */
  def refusal: Option[Reason] =
    version.filter(FormatReleases.isBefore(_, format.oldest)).map(found => needs(format.oldest, found))

  /** Why, where something that it should have is missing. */
  def lacks(member: String): Reason =
    refusal.getOrElse(needs(
      s"${format.oldest} to ${format.newest}",
      s"${version.getOrElse("another")} without $member"))

  private def needs(releases: String, found: String) =
    Reason(ReasonCode.NeedsRelease, "needed" -> s"${format.title} $releases", "found" -> found)
}

/** The releases of table formats that are found, and which of them are known. */
object FormatReleases {
  private def formats = TableFormats.all.filter(_.packages.nonEmpty)

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val ofClass = new ClassValue[Option[Release]] {
    override def computeValue(c: Class[_]): Option[Release] = {
      // A catalog's own class may extend one of a table format.
      val found = for {
        known <- Reflection.lineage(c)
        format <- formats.find(_.packages.exists(known.getName.startsWith))
      } yield Release(format, format.release(known).filter(numbers(_).nonEmpty))
      found.take(1).toList.headOption
    }
  }

  /** The release that a class belongs to, if it is a table format's. */
  def of(c: Class[_]): Option[Release] = ofClass.get(c)

  /** The release that a class of this name would belong to. */
  def releaseOfClass(name: String, loader: ClassLoader): Option[Release] =
    formats.find(_.packages.exists(name.startsWith)).flatMap(in(loader, _))

  private def in(loader: ClassLoader, format: TableFormat): Option[Release] =
    format.knownClass.flatMap(name => Try(Class.forName(name, false, loader)).toOption.flatMap(of))

  /** The releases that a class loader finds. */
  def all(loader: ClassLoader): Seq[Release] =
    formats.flatMap(in(loader, _))

  /** Why nothing is done with an object of a release that is too old. */
  def refusal(on: AnyRef): Option[Reason] = of(on.getClass).flatMap(_.refusal)

  /** @throws UnsupportedRelease where there is such a reason */
  def require(on: AnyRef): Unit = refusal(on).foreach(why => throw new UnsupportedRelease(why))

  private[tables] def isBefore(version: String, oldest: String): Boolean = {
    val pairs = numbers(version).zipAll(numbers(oldest), 0, 0)
    pairs.find { case (found, needed) => found != needed }.exists { case (found, needed) => found < needed }
  }

  private def numbers(version: String): Seq[Int] =
    version.split("[.-]").toSeq.map(part => Try(part.toInt)).takeWhile(_.isSuccess).map(_.get)
}

/** This release of a table format cannot be used: `reason` says which one is needed. */
final class UnsupportedRelease(override val reason: Reason)
  extends RuntimeException(reason.sentence)
  with ReasonedFailure

object UnsupportedRelease {

  /** What to throw where something is not there that a release should have. */
  def apply(release: Option[Release], member: String): UnsupportedRelease =
    new UnsupportedRelease(release.fold(Reason(
      ReasonCode.Failed,
      "error" -> s"there is no $member"))(_.lacks(member)))
}
