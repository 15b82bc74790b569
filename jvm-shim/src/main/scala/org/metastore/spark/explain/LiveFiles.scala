package org.metastore.spark.explain

/**
 * The live data files of the snapshot that a scan reads, before the table format and the query's own choice of files and
 * partitions leave some to us.
 *
 * @param by     who leaves files out, as EXPLAIN names them
 * @param number how many there are; `None` where counting them would list them
 * @param list   their paths, and rows where they are known: reads the table's metadata
 */
final class LiveFiles(val by: String, val number: Option[Long], val list: () => Seq[(String, Option[Long])])

object LiveFiles {

  /** Of a scan of which nothing is known. */
  val Unknown: LiveFiles = new LiveFiles("", None, () => Nil)
}
