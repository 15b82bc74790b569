package org.metastore.spark.tables

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
    if (rows.exists(_ < counted)) None else Some(counted)
}

/**
 * A data file as ANALYZE wants to know it.
 *
 * @param deletes digest of what may delete its rows; none where nothing does
 * @param hasEqualityDeletes whether rows may be deleted by their values: only who reads the data file knows how many
 * @param names what it calls the columns whose keys do not tell
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

/** The data files that ANALYZE is to read. `hasCurrentSchema`: who reads the snapshot by its id sees the table's schema. */
final case class SnapshotFacts(
    snapshot: Option[String],
    files: Seq[FileFacts],
    recentFiles: Seq[String] = Nil,
    hasOtherRows: Boolean = false,
    hasCurrentSchema: Boolean = true)

/** Why a table cannot be analyzed; `isSelected`: its name is that of a table, and of what was selected of its history. */
final case class TableRefusal(reason: String, isSelected: Boolean = false)
