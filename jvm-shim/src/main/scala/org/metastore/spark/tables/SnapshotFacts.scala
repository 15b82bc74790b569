package org.metastore.spark.tables

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.FileKey

/** A live data file of a snapshot, as the table itself knows it. `deletedRows = None`: unknown. */
final case class DataFile(
    path: String,
    size: Long,
    rows: Option[Long],
    deletedRows: Option[Long],
    partition: Map[String, String],
    modified: Option[Long] = None) {

  def key: FileKey = FileKey(path, size, modified)
}

object DataFile {

  /** The deleted rows that a deletion vector counts; unknown where it counts more rows than the file has. */
  def deletedRows(counted: Long, rows: Option[Long]): Option[Long] =
    Optional.when(rows.forall(_ >= counted))(counted)
}

/**
 * A data file with all that ANALYZE needs to read it.
 *
 * @param deletes digest of the files that may delete its rows; None where there are none
 * @param hasEqualityDeletes whether rows may be deleted by their values: only a read of the data file counts
 *                           them
 * @param names its names of the columns whose keys are no names
 */
final case class FileFacts(
    live: DataFile,
    location: String,
    deletes: Option[String] = None,
    format: String = FileFacts.Parquet,
    isEncrypted: Boolean = false,
    constants: FileConstants = FileConstants(),
    names: Map[String, String] = Map.empty,
    hasEqualityDeletes: Boolean = false)

object FileFacts {

  /** The format of data files that statistics are made of. */
  val Parquet = "parquet"
}

/**
 * The data files that ANALYZE is to read.
 *
 * @param recentFiles      paths of files that may still change without a new modification time
 * @param hasOtherRows     whether there are rows outside of these files
 * @param hasCurrentSchema whether a query of the snapshot by its id shows the table's schema
 */
final case class SnapshotFacts(
    snapshot: Option[String],
    files: Seq[FileFacts],
    recentFiles: Seq[String] = Nil,
    hasOtherRows: Boolean = false,
    hasCurrentSchema: Boolean = true)

/**
 * The reason why a table cannot be analyzed; `isSelected`: its name selects a snapshot, a branch or a tag.
 */
final case class TableRefusal(reason: String, isSelected: Boolean = false)
