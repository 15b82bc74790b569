package org.metastore.spark.store

/**
 * What tells a data file from all others of its table: docs/format.md, "Identity".
 *
 * @param modified modification time in milliseconds, where files may be replaced under their paths
 */
final case class FileKey(path: String, size: Long, modified: Option[Long])

/** A row of `files`: a data file of a block. Column names as in docs/format.md. */
final case class DataFileRow(
    file: Int, path: String, size: Long, modified: Option[Long], rows: Option[Long], partition: Map[String, String],
    sketches: Option[ObjectRef], sketchesFile: Option[Int], frequencies: Option[DetailRef] = None,
    histograms: Option[DetailRef] = None) {

  def key: FileKey = FileKey(path, size, modified)
}

/** A detail object and a data file's ordinal in it. */
final case class DetailRef(ref: ObjectRef, file: Int)

/**
 * A value of a column and how often it occurs; with `error` rows more, at most. In the column's encoding, as in [[SummaryRow]].
 *
 * @param files how often it occurs in each data file that holds it, by place in the snapshot's list; empty where not known
 */
final case class ValueCount(value: Any, frequency: Long, error: Long, files: Map[Int, Long])

/** A histogram as it is stored. Lists are empty where null. */
final case class HistogramRow(
    kind: String, edges: IndexedSeq[Any], counts: IndexedSeq[Long], distincts: IndexedSeq[Long],
    errors: IndexedSeq[Long] = IndexedSeq.empty)

/** A row of `table-files`: a live data file of a snapshot. `deletedRows = None`: unknown. */
final case class TableFileRow(
    block: Option[String], file: Option[Int], path: String, size: Long, rows: Option[Long], deletes: Option[String],
    deletedRows: Option[Long], logFiles: Option[Int], modified: Option[Long]) {

  def key: FileKey = FileKey(path, size, modified)

  /** Rows that nothing deletes; `None` where not known. */
  def liveRows: Option[Long] = if (deletes.isEmpty) rows else for (all <- rows; deleted <- deletedRows) yield all - deleted
}

/**
 * A row of `summary` or `table-summary`: everything known of one column in one data file, or in a table.
 *
 * `lo`, `hi` and `percentiles` are values in the column's encoding: `Long`, `Double` or `Array[Byte]`; `CatalystValue`
 * converts them to Catalyst's.
 *
 * @param column     ordinal in the block's or snapshot's columns
 * @param file       data file in the block; `None` at table level
 * @param files      data files that a table-level row covers; 1 at file level
 * @param sumExact   unscaled
 * @param singles    values that occur once
 */
final case class SummaryRow(
    column: Int, file: Option[Int], rows: Option[Long], nulls: Option[Long], nans: Option[Long], lo: Option[Any], hi: Option[Any],
    loExact: Boolean, hiExact: Boolean, distinct: Option[Long], distinctError: Option[Double],
    sumExact: Option[java.math.BigDecimal], sum: Option[Double], mean: Option[Double], m2: Option[Double],
    avgLen: Option[Double], maxLen: Option[Long], trues: Option[Long], compressedBytes: Option[Long],
    uncompressedBytes: Option[Long], frequencies: Option[String], frequenciesFloor: Option[Long],
    percentiles: IndexedSeq[Any], extra: Map[String, Array[Byte]], files: Int, singles: Option[Long] = None,
    frequenciesAlgorithm: Option[String] = None)

object SummaryRow {

  /** What is known of a column in a table without rows. */
  def ofNoRows(column: Int): SummaryRow = SummaryRow(
    column, file = None, rows = Some(0), nulls = Some(0), nans = Some(0), lo = None, hi = None, loExact = true, hiExact = true,
    distinct = Some(0), distinctError = None, sumExact = None, sum = None, mean = None, m2 = None, avgLen = None, maxLen = None,
    trues = None, compressedBytes = None, uncompressedBytes = None, frequencies = Some("complete"), frequenciesFloor = None,
    percentiles = IndexedSeq.empty, extra = Map.empty, files = 0)
}

/** A row of `sketches` or `table-sketches`. */
final case class SketchRow(column: Int, file: Option[Int], theta: Option[Array[Byte]])
