package org.metastore.spark.explain

/**
 * The live data files of the snapshot that a scan reads, before the table format and the query's own choice of files and
 * partitions leave some to us.
 *
 * @param by     who leaves files out, as EXPLAIN names them
 * @param number how many there are; `None` where counting them would list them
 * @param list   their paths, and rows where they are known: reads the table's metadata
 */
final class LiveFiles(val by: String, val number: Option[Long], val list: () => Seq[(String, Option[Long])]) {

  /** How many there are beyond the files of a scan, as far as they can be counted. */
  def beyond(files: Int): Long = math.max(0L, number.fold(0L)(_ - files))
}

object LiveFiles {

  /** Of a scan of which nothing is known. */
  val Unknown: LiveFiles = new LiveFiles("", None, () => Nil)
}
