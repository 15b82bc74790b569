package org.metastore.spark.tables

import org.apache.commons.codec.digest.DigestUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Cast, Literal}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StringType, StructField}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.{StoreFiles, TableIdentity}

/** A table of any format. An object serves one question: what it has read does not change. */
trait LakeTable {

  /** The name of its format in `contract/formats.json`. */
  def format: String
  def uuid: String
  def location: String

  /** The location with the scheme of its file system, where that is not the local one. */
  def qualifiedLocation: String = location

  /** The table whose statistics these are, and where they are stored. */
  final def identity: TableIdentity = TableIdentity(format, uuid, location, location, nameMapping, ownFiles)

  /** The snapshot that the name points to; `None`: the table was never written. */
  def current: Option[String]

  /** The snapshot itself and those it was made from, newest first. */
  def lineage(snapshot: String): Iterator[String]

  /** Whether the table no longer knows a snapshot, as it happens to old ones. */
  def hasExpired(snapshot: String): Boolean = false

  /** Whether older ancestors of a snapshot have expired: `lineage` ends before them. */
  def hasExpiredAncestors(snapshot: String): Boolean = false

  /** The snapshot called `text`: an id, or a name that the format gives to snapshots. */
  def snapshot(text: String): Option[String]

  /** The snapshot that was current at an instant, in microseconds. */
  def snapshotAt(micros: Long): Option[String]

  /** Leaves of a snapshot's schema, in order; of the table's own for the snapshot that its name points to. */
  def leaves(snapshot: Option[String]): IndexedSeq[Leaf]

  /** The data files of a snapshot. Reads the table's metadata. */
  def dataFiles(snapshot: String): Seq[DataFile]

  /** The data files of the snapshot that the name points to; none if the table was never written. */
  final def currentFiles: Seq[DataFile] = current.fold(Seq.empty[DataFile])(dataFiles)

  /** Names of the columns that partition the table, where its data files may not hold them. */
  def partitionColumns: Seq[String] = Nil

  /**
   * The field ids by which readers look for columns, by key; empty if they look for names, or if keys are
   * field ids.
   */
  def fieldIds: Map[String, Long] = Map.empty

  /**
   * Keys of the columns that some reader takes to be never null: it may show any value for a file without
   * them.
   */
  def requiredColumns: Set[String] = Set.empty

  /** Stored values, as text by key, of columns that have these values in data files without them. */
  def defaults: Map[String, String] = Map.empty

  /** Whether people may name its snapshots by a version, a branch, a tag or an instant. */
  def namesSnapshots: Boolean = true

  /** Whether a session caches the listing of a table of its catalog. */
  def isKeptBySession: Boolean = false

  /** Reads the metadata in the session catalog's cache anew; returns whether they have changed. */
  def refresh(): Boolean = false

  /** The file with the metadata, where each commit writes another one. */
  def metadataFile: Option[String] = None

  /** Table properties. */
  def properties: Map[String, String] = Map.empty

  /** Whether the queries by which its commands find their files are planned when the command runs. */
  def plansCommandsLate: Boolean = false

  /** The name mapping by which data files without field ids are read. */
  def nameMapping: Option[String] = None

  /** The table's own access to files; None if the session's access serves. */
  def ownFiles: Option[StoreFiles] = None

  /** The table's own settings for a location, keys among them, by the format's names. */
  def storageProperties(location: String): Map[String, String] = Map.empty

  /** The prefixes of locations for which these settings have separate keys. */
  def storagePrefixes: Seq[String] = Nil

  /** The table's own way to write to a folder; None if the session's settings suffice. */
  def folderAccess(uri: String): Option[FolderAccess] = None

  /** The reason why it cannot be analyzed, if there is one. */
  def refusal: Option[TableRefusal] = None

  /**
   * The data files of the snapshot that the name points to, with all that ANALYZE needs. Reads the table's
   * metadata.
   */
  def facts: SnapshotFacts

  /**
   * Publishes sketches of a snapshot's columns to other engines; returns the keys of the columns with one.
   */
  def publish(snapshot: String, sketches: Seq[PublishedSketch]): Set[String] = Set.empty
}

object LakeTable {

  /** The root of a table with the scheme of its file system. */
  def qualify(root: Path, session: SparkSession): Path = {
    val uri = root.toUri
    // A file system costs a copy of all settings for every scan. The path itself may suffice.
    if (uri.getScheme != null && (uri.getAuthority != null || uri.getScheme == "file")) root
    else root.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(root)
  }

  /** The identity of a directory: docs/format.md, "Identity". */
  def uuidOf(root: Path): String = DigestUtils.sha256Hex(root.toString.stripSuffix("/"))

  /** Catalyst's values of partition columns as texts by name; null is null. */
  def partitionTexts(values: Seq[(StructField, Any)]): Map[String, String] = {
    val zone = Some(SQLConf.get.sessionLocalTimeZone)
    Indexed.entries(values) { case (field, value) =>
      val text = Cast(Literal(value, field.dataType), StringType, zone).eval()
      field.name -> (if (text == null) null else text.toString)
    }
  }

  /** The path of a data file in the statistics: relative to the table if below it, else absolute; decoded. */
  def pathInTable(file: Path, root: Path): String = {
    val uri = file.toUri
    val base = root.toUri
    val folder = base.getPath.stripSuffix("/") + "/"
    // A shallow clone names files of its source, which may lie in another bucket under the same path.
    def sameStore =
      uri.getScheme == null || (uri.getScheme == base.getScheme && uri.getAuthority == base.getAuthority)
    if (!file.isAbsolute) uri.getPath
    else if (sameStore && uri.getPath.startsWith(folder)) uri.getPath.substring(folder.length)
    else file.toString
  }
}
