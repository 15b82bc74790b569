package org.metastore.spark.tables

import org.apache.commons.codec.digest.DigestUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex, FileIndex, HadoopFsRelation, InMemoryFileIndex, LogicalRelation
}

/**
 * A directory of Parquet files as Spark reads it, by its path or as a table of the session's catalog. It has
 * no snapshots: the listing of its files stands for one, and only the statistics know older listings.
 */
final class ParquetTable private (relation: HadoopFsRelation, isOfSession: Boolean) extends LakeTable {
  import ParquetTable._

  private val root = rootOf(relation)

  override val format: String = ParquetTable.name
  override lazy val uuid: String = LakeTable.uuidOf(root)
  override lazy val location: String = root.toString
  override lazy val current: Option[String] = Some(digest(files))

  override def lineage(snapshot: String): Iterator[String] = Iterator(snapshot)
  override def hasExpired(snapshot: String): Boolean = !current.contains(snapshot)
  override def hasExpiredAncestors(snapshot: String): Boolean = true
  override def snapshot(text: String): Option[String] = current.filter(_ == text)
  override def snapshotAt(micros: Long): Option[String] = None
  override def namesSnapshots: Boolean = false

  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] =
    Leaf.byNames(relation.schema)

  override def dataFiles(snapshot: String): Seq[DataFile] =
    if (current.contains(snapshot)) files.map(_.live) else Nil

  override def partitionColumns: Seq[String] = relation.partitionSchema.fieldNames.toSeq

  override def isKeptBySession: Boolean = true

  override def facts: SnapshotFacts = {
    val settled = System.currentTimeMillis - SettledMillis
    val listed = listFiles(relation.location)
    val recent = listed.filterNot(_.live.modified.exists(_ <= settled))
    SnapshotFacts(Some(digest(listed)), listed, recentFiles = recent.map(_.live.path))
  }

  // A session caches the listing of a table of its catalog, and other programs write files.
  private lazy val files = listFiles(if (isOfSession) listAnew(relation) else relation.location)

  private def listFiles(index: FileIndex): Seq[FileFacts] = {
    val fields = relation.partitionSchema.fields.toSeq
    val files = for {
      directory <- index.listFiles(Nil, Nil).toList
      partition = LakeTable.partitionTexts(fields.zip(directory.values.toSeq(fields.map(_.dataType))))
      file <- directory.files
    } yield {
      val path = LakeTable.pathInTable(file.getPath, root)
      val live = DataFile(path, file.getLen, None, Some(0L), partition, Some(file.getModificationTime))
      FileFacts(live, file.getPath.toString)
    }
    files.sortBy(_.live.path)
  }
}

object ParquetTable extends TableFormat {
  override val name: String = "parquet"
  override def isProvider: Boolean = true

  override def is(table: Table): Boolean = false // the session's catalog shows a table of no kind of its own

  override def open(relation: LogicalRelation): Option[LakeTable] = relation.relation match {
    case files: HadoopFsRelation if is(files) =>
      Some(new ParquetTable(files, isOfSession = relation.catalogTable.isDefined))
    case _ => None
  }

  /**
   * The coarsest clock of a file system: two files written within this time may have equal modification
   * times.
   */
  private val SettledMillis = 2000L

  private val formats = Set("org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat")
  private val indexes = Set(
    "org.apache.spark.sql.execution.datasources.InMemoryFileIndex",
    "org.apache.spark.sql.execution.datasources.CatalogFileIndex")

  /** Whether a relation reads Parquet files by Spark's own file source. */
  def isRead(relation: HadoopFsRelation): Boolean =
    formats(relation.fileFormat.getClass.getName) && indexes(relation.location.getClass.getName)

  /** Whether a relation reads one directory of Parquet files. */
  def is(relation: HadoopFsRelation): Boolean = isRead(relation) && relation.location.rootPaths.length == 1

  /** The directory that a relation reads, with the scheme of its file system. */
  def rootOf(relation: HadoopFsRelation): Path =
    LakeTable.qualify(relation.location.rootPaths.head, relation.sparkSession)

  private def listAnew(relation: HadoopFsRelation): FileIndex = relation.location match {
    case partitions: CatalogFileIndex =>
      new CatalogFileIndex(relation.sparkSession, partitions.table, partitions.sizeInBytes)
    case index =>
      new InMemoryFileIndex(relation.sparkSession, index.rootPaths, relation.options, Some(relation.schema))
  }

  private def digest(files: Seq[FileFacts]): String = {
    val lines = files.map(file => digestLine(file.live))
    DigestUtils.sha256Hex(lines.mkString).take(32)
  }

  private def digestLine(file: DataFile): String =
    s"${file.path}\u0000${file.size}\u0000${file.modified.getOrElse(0L)}\n"
}
