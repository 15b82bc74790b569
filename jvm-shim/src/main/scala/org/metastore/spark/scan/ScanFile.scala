package org.metastore.spark.scan

import scala.collection.immutable

import org.apache.spark.sql.catalyst.expressions.Literal

import org.metastore.spark.pruning.DeletedRows
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.FileKey

/**
 * A data file of a scan, as the table format lists it at planning.
 *
 * @param deletedRows estimated number of deleted rows
 * @param deleted     exact number of deleted rows; also unknown if a scan reads a part of the file, or
 *                    further rows
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

  /** The paths of files, each with its number of rows if the format has it. */
  def rowsByPath(files: Seq[ScanFile]): Seq[(String, Option[Long])] =
    files.map(file => file.path -> file.rows)
}

/** Data files that several scans share. Their join with the statistics is cached by `list`. */
private[scan] final class ScanFiles(files: IndexedSeq[ScanFile]) extends immutable.IndexedSeq[ScanFile] {
  override def length: Int = files.length
  override def apply(index: Int): ScanFile = files(index)

  lazy val list: FileList = ScanFiles.listOf(files)
}

private[scan] object ScanFiles {

  /** The list of data files that is joined with the statistics. */
  def listOf(files: IndexedSeq[ScanFile]): FileList = files match {
    case shared: ScanFiles => shared.list
    case single => FileList.fromKeys(single.map(file => FileKey(file.path, file.size, file.modified)))
  }
}
