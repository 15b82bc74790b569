package org.metastore.spark.tables

import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{Reason, ReasonCode, ReasonedFailure}
import org.metastore.spark.statistics.objects.TableIdentity

/** Finds the table format behind what Spark knows of a table. */
object TableFormats {

  /** Whether a text says where a table is, rather than its name; as in Python. */
  def isLocation(text: String): Boolean = !text.contains('`') && (text.contains('/') || text.startsWith("."))

  private val V1Class = "org.apache.spark.sql.connector.catalog.V1Table"

  /** The table that a catalog loads. */
  def of(table: Table): Option[LakeTable] =
    if (IcebergTable.is(table)) Some(IcebergTable(table)) else if (DeltaTable.is(table)) Some(DeltaTable(table)) else None

  /** The table of an analyzed relation without aliases. */
  def of(relation: LogicalPlan): Option[LakeTable] = relation match {
    case v2: DataSourceV2Relation => of(v2.table)
    case v1: LogicalRelation => v1.relation match {
      case files: HadoopFsRelation if DeltaTable.is(files) => Some(DeltaTable(files))
      case files: HadoopFsRelation if HudiTable.is(files) => Some(HudiTable(files))
      case files: HadoopFsRelation if ParquetTable.is(files) => Some(ParquetTable(files))
      case other =>
        HudiTable.requireIndex(other)
        EmptyHudiTable.of(other, v1.catalogTable, v1.schema)
    }
    case _ => None
  }

  /** Which table it is that a catalog loads, without listing its files. */
  def identity(session: SparkSession, table: Table): Option[TableIdentity] = of(table).map(_.identity).orElse(for {
    format <- format(table)
    location <- Reflection.call[CatalogTable](table, "v1Table").storage.locationUri
    root = HudiTable.qualify(new Path(location), session)
  } yield TableIdentity(format, ParquetTable.uuidOf(root), root.toString, root.toString))

  /** The format of a table that a catalog loads, without asking the table for anything. */
  def format(table: Table): Option[String] =
    if (IcebergTable.is(table)) Some("iceberg") else if (DeltaTable.is(table)) Some("delta") else if (HudiTable.is(table)) Some("hudi")
    else if (table.getClass.getName == V1Class) Option(table.properties.get(TableCatalog.PROP_PROVIDER)).flatMap(ofProvider)
    else None

  /** The format of a table that the session's catalog says to be of a provider, where such tables are no plug-in's. */
  def ofProvider(provider: String): Option[String] = Some(provider.toLowerCase(Locale.ROOT)).filter(byProvider)

  /** The format whose files a name such as `` parquet.`/path` `` reads without a catalog. */
  def ofPath(name: Seq[String]): Option[String] = name match {
    case Seq(format, path) if path.contains('/') => ofProvider(format)
    case _ => None
  }

  /** The relation of such a name, where Spark resolves it for its own file formats alone. */
  def atPath(session: SparkSession, name: Seq[String]): Option[LogicalPlan] =
    ofPath(name).filter(_ == HudiTable.Format).map(format => session.read.format(format).load(name.last).queryExecution.analyzed)

  private val byProvider = Set(ParquetTable.Format, HudiTable.Format)
}

/** A table format as it is on the class path; `version` is None where its jar does not tell. */
final case class Release(format: TableFormat, version: Option[String]) {

  /** Why its tables are left alone: it is older than any release whose members and meaning we know. */
  def refusal: Option[Reason] =
    version.filter(FormatReleases.isBefore(_, format.oldest)).map(found => needs(format.oldest, found))

  /** Why, where something that it should have is missing. */
  def lacks(member: String): Reason =
    refusal.getOrElse(needs(s"${format.oldest} to ${format.newest}", s"${version.getOrElse("another")} without $member"))

  private def needs(releases: String, found: String) =
    Reason(ReasonCode.NeedsRelease, "needed" -> s"${format.name} $releases", "found" -> found)
}

/** A table format that comes in jars of its own. */
final case class TableFormat(name: String, packages: Seq[String], shown: String, oldest: String, newest: String)

/** The releases of table formats that are found, and which of them are known. */
object FormatReleases {
  private val formats = Contract.read("formats").asScala.filter(_.has("packages")).map { one =>
    def text(field: String) = one.get(field).asText
    TableFormat(text("title"), Contract.texts(one, "packages"), text("shown_by"), text("oldest"), text("newest"))
  }.toSeq

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val ofClass = new ClassValue[Option[Release]] {
    override def computeValue(c: Class[_]): Option[Release] =
      formats.find(_.packages.exists(c.getName.startsWith)).map(format => Release(format, version(c)))
  }

  /** The release that a class belongs to, if it is a table format's. */
  def of(c: Class[_]): Option[Release] = ofClass.get(c)

  /** The release that a class of this name would belong to. */
  def releaseOfClass(name: String, loader: ClassLoader): Option[Release] =
    formats.find(_.packages.exists(name.startsWith)).flatMap(in(loader, _))

  private def in(loader: ClassLoader, format: TableFormat): Option[Release] =
    Try(Class.forName(format.shown, false, loader)).toOption.flatMap(of)

  /** The releases that a class loader finds. */
  def all(loader: ClassLoader): Seq[Release] =
    formats.flatMap(in(loader, _))

  /** Why nothing is done with an object of a release that is too old. */
  def refusal(on: AnyRef): Option[Reason] = of(on.getClass).flatMap(_.refusal)

  /** @throws UnsupportedRelease where there is such a reason */
  def require(on: AnyRef): Unit = refusal(on).foreach(why => throw new UnsupportedRelease(why))

  // Iceberg's jars have it in a class, the others' in the manifest.
  private def version(c: Class[_]): Option[String] = {
    def built = Try(Class.forName("org.apache.iceberg.IcebergBuild", true, c.getClassLoader).getMethod("version").invoke(null))
    def packaged = Option(c.getPackage).flatMap(p => Option(p.getImplementationVersion))
    (if (c.getName.startsWith("org.apache.iceberg.")) built.toOption.map(_.toString) else packaged).filter(numbers(_).nonEmpty)
  }

  private[tables] def isBefore(version: String, oldest: String): Boolean = {
    val pairs = numbers(version).zipAll(numbers(oldest), 0, 0)
    pairs.find { case (found, needed) => found != needed }.exists { case (found, needed) => found < needed }
  }

  private def numbers(version: String): Seq[Int] =
    version.split("[.-]").toSeq.map(part => Try(part.toInt)).takeWhile(_.isSuccess).map(_.get)
}

/** This release of a table format cannot be used: `reason` says which one is needed. */
final class UnsupportedRelease(override val reason: Reason) extends RuntimeException(reason.sentence) with ReasonedFailure

object UnsupportedRelease {

  /** What to throw where something is not there that a release should have. */
  def apply(release: Option[Release], member: String): UnsupportedRelease =
    new UnsupportedRelease(release.fold(Reason(ReasonCode.Failed, "error" -> s"there is no $member"))(_.lacks(member)))
}
