package org.metastore.spark.scan

import scala.collection.immutable

import org.apache.spark.sql.catalyst.expressions.Literal

import org.metastore.spark.pruning.DeletedRows
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.FileKey

/**
 * A data file of a scan, as the table format lists it at planning.
 *
 * @param deletedRows an estimate
 * @param deleted     what is known for certain; unknown too where not all other rows of the file are read, or others are
 */
final case class ScanFile(
    path: String,
    size: Long,
    rows: Option[Long],
    deletedRows: Option[Double] = Some(0),
    modified: Option[Long] = None,
    hasChanges: Boolean = false,
    deleted: DeletedRows = DeletedRows.Unknown,
    partition: Map[String, Literal] = Map.empty)

private[scan] object ScanFile {

  /** The numbers of rows that files have, where the format counts them. */
  def rowsByPath(files: Seq[ScanFile]): Seq[(String, Option[Long])] =
    files.map(file => file.path -> file.rows)
}

/** The data files of several scans, with the list by which their join with the statistics is found again. */
private[scan] final class ScanFiles(files: IndexedSeq[ScanFile]) extends immutable.IndexedSeq[ScanFile] {
  override def length: Int = files.length
  override def apply(place: Int): ScanFile = files(place)

  lazy val list: FileList = ScanFiles.listOf(files)
}

private[scan] object ScanFiles {

  /** The list of data files that the statistics are asked with. */
  def listOf(files: IndexedSeq[ScanFile]): FileList = files match {
    case shared: ScanFiles => shared.list
    case own => FileList.fromKeys(own.map(file => FileKey(file.path, file.size, file.modified)))
  }
}
