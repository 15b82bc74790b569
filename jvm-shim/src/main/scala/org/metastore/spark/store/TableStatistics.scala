package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/**
 * One version of a table's statistics, as planning needs it. Thread-safe; what was read stays in the driver's cache.
 *
 * {{{
 * StatisticsStore.open(root, hadoopConf).planning(uuid, limit) match {
 *   case Right(statistics) =>
 *     val filter = PruningFilter.compile(conjuncts, resolver)
 *     filter.evaluate(statistics.of(fileList, filter.needs))
 *   case Left(reason) => ... // plan as without us
 * }
 * }}}
 */
trait TableStatistics {

  /** Digest of the manifest: equal fingerprints mean equal statistics. Belongs into equals/hashCode of pruned scans. */
  def fingerprint: String

  def manifest: Manifest

  /** Columns of an analyzed snapshot whose distinct values were counted over the table, by key. Never throws. */
  def distinct(of: Snapshot): Either[Reason, Map[String, TableDistinct]]

  /**
   * How the values of columns are spread over the rows of an analyzed snapshot, as far as it is known. Never throws.
   *
   * @param columns keys and types: they are read side by side
   */
  def histograms(of: Snapshot, columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram]

  /**
   * Joins the statistics with the files of a scan; cached by the list's identity. Never throws.
   *
   * @param columns keys and types of columns that are going to be asked for: they are read meanwhile
   */
  def of(files: FileList, columns: Seq[(String, DataType)]): FileSetStatistics
}
