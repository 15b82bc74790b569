package org.metastore.spark.scan

import java.util.BitSet

import org.metastore.spark.pruning.{ColumnResolver, FileSets, LiveFiles}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * The files that a scan would read if it were planned now, and the names of its columns in the statistics.
 *
 * @param areChosen whether a scan can be made of some of the files, so that it reads exactly these
 */
private[scan] final case class ScannedFiles(
    table: TableIdentity,
    files: IndexedSeq[ScanFile],
    resolver: ColumnResolver,
    live: LiveFiles,
    areChosen: Boolean = false) {

  lazy val list: FileList = ScanFiles.listOf(files)

  /** The rows of each file as the table format counts them; -1: unknown. */
  lazy val listedRows: Array[Long] = Array.tabulate(files.length)(i => files(i).rows.getOrElse(-1L))

  /** The files whose rows other files change. */
  def filesWithChanges: BitSet = FileSets.where(files.length)(files(_).hasChanges)

  /** Whether these are all files of the snapshot, as far as they can be counted. */
  def isWhole: Boolean = live.beyond(files.length) == 0
}
