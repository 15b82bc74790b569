package org.metastore.spark.adapter

import scala.collection.immutable

import org.apache.spark.sql.catalyst.expressions.Literal

import org.metastore.spark.store.{FileKey, FileList}

/**
 * A data file of a scan, as the table format lists it at planning.
 *
 * @param path the path by which the statistics know it.
 * @param rows physical rows, where the format knows them.
 * @param deletedRows rows that are deleted, where that is known: only estimates depend on it.
 * @param modified modification time in milliseconds, where files have no other identity.
 * @param changed  whether other files change rows of this one as it is read: its statistics say nothing about them.
 * @param partition values of partition columns, by key, as far as the format tells: only estimates depend on it.
 */
final case class ScanFile(
    path: String,
    size: Long,
    rows: Option[Long],
    deletedRows: Option[Double] = Some(0),
    modified: Option[Long] = None,
    hasChanges: Boolean = false,
    partition: Map[String, Literal] = Map.empty)

/** The data files of several scans, with the list by which their join with the statistics is found again. */
private[adapter] final class ScanFiles(files: IndexedSeq[ScanFile]) extends immutable.IndexedSeq[ScanFile] {
  override def length: Int = files.length
  override def apply(place: Int): ScanFile = files(place)

  lazy val list: FileList = ScanFiles.listOf(files)
}

private[adapter] object ScanFiles {

  /** The list of data files that the statistics are asked with. */
  def listOf(files: IndexedSeq[ScanFile]): FileList = files match {
    case shared: ScanFiles => shared.list
    case own => FileList.of(own.map(file => FileKey(file.path, file.size, file.modified)))
  }
}
