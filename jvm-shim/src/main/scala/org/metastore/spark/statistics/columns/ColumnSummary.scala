package org.metastore.spark.statistics.columns

import java.math.BigInteger
import java.util.BitSet

import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import org.metastore.spark.statistics.objects.Gather

/**
 * The statistics of one column in one data file; physical rows, deleted ones included.
 *
 * @param lo no non-null value is below it; Catalyst's internal value of the type; `None`: unknown
 * @param hi no non-null value is above it, in Spark's order: NaN where doubles hold one
 * @param distinct distinct non-null values; `avgLen`, `maxLen` in bytes: only what the statistics hold
 */
final case class FileSummary(
    rows: Long,
    nulls: Option[Long],
    nans: Option[Long],
    lo: Option[Any],
    hi: Option[Any],
    loExact: Boolean,
    hiExact: Boolean,
    distinct: Option[Long],
    avgLen: Option[Double],
    maxLen: Option[Long])

/**
 * One column in all files of a [[FileList]], aligned with it. `-1` in a count and `false` in `hasStatistics`
 * mean unknown: then nothing may be concluded. Contradictory statistics of a file (bounds inverted, more
 * nulls than rows) are unknown already.
 *
 * @param bounds bounds of the file's non-null values in Spark's order; where doubles hold a NaN it is the
 *               upper bound
 */
final class ColumnSummary(
    val key: String,
    val dataType: DataType,
    val hasStatistics: Array[Boolean],
    val rows: Array[Long],
    val nulls: Array[Long],
    val nans: Array[Long],
    val bounds: Bounds,
    contradictory: BitSet)
  extends CacheWeight {

  /**
   * Every file's statistics are usable, and no file's values are all null: then bounds alone decide
   * comparisons.
   */
  lazy val boundsDecide: Boolean = {
    var file = 0
    while (file < hasStatistics.length && hasStatistics(file) && !isAllNull(file)) file += 1
    file == hasStatistics.length
  }

  /** Whether it is known how many of the file's rows are NULL. */
  def hasNullCount(file: Int): Boolean = hasStatistics(file) && nulls(file) >= 0

  /** Whether the column is NULL in every row of the file. */
  def isAllNull(file: Int): Boolean = nulls(file) == rows(file)

  /** Whether the values are such that NaN may be one. */
  def isFloatingPoint: Boolean = dataType == FloatType || dataType == DoubleType

  /** Whether NaN may be a value of the file. */
  def mayHaveNaN(file: Int): Boolean = isFloatingPoint && nans(file) != 0

  /** Whether the file's statistics were set aside because they contradict themselves. */
  def isContradictory(file: Int): Boolean = contradictory.get(file)

  def length: Int = hasStatistics.length

  override def weight: Long = length * 25L + bounds.weight

  /** The summary of some of the files, aligned with `files`. */
  def at(files: Array[Int]): ColumnSummary = {
    val set = new BitSet
    if (!contradictory.isEmpty) files.indices.foreach(i => set.set(i, contradictory.get(files(i))))
    new ColumnSummary(
      key,
      dataType,
      Gather(hasStatistics, files),
      Gather(rows, files),
      Gather(nulls, files),
      Gather(nans, files),
      bounds.at(files),
      set)
  }
}

/** Distinct counts and lengths of one column, aligned with a [[FileList]]; -1 and NaN mean unknown. */
final class ColumnSizes(val distinct: Array[Long], val avgLen: Array[Double], val maxLen: Array[Long])
  extends CacheWeight {
  override def weight: Long = distinct.length * 24L
}

/** Exact sums of the values of one column, unscaled, aligned with a [[FileList]]; null is unknown. */
final class ColumnSums(val sums: Array[BigInteger]) extends CacheWeight {
  override def weight: Long = sums.length * 60L
}
