package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

/**
 * What is known of one column in one data file: physical rows, deleted ones included.
 *
 * @param lo       no non-null, non-NaN value is below it; Catalyst's internal value of `dataType`; `None`: unknown
 * @param hi       no non-null, non-NaN value is above it
 * @param loExact  `lo` occurs in the file (not cut or rounded)
 * @param distinct distinct non-null values; `avgLen`, `maxLen` in bytes: only what the statistics hold
 */
final case class ColumnZone(
    rows: Long, nulls: Option[Long], nans: Option[Long], lo: Option[Any], hi: Option[Any], loExact: Boolean, hiExact: Boolean,
    distinct: Option[Long], avgLen: Option[Double], maxLen: Option[Long])

/**
 * One column in all files of a [[FileList]], aligned with it. `-1` in a count and `false` in `known` mean unknown: then
 * nothing may be concluded. Contradictory statistics of a file (bounds inverted, more nulls than rows) are unknown already.
 *
 * @param known   the file has usable statistics of this column
 * @param hasLo   the file has a lower bound; its value stands in `bounds`
 * @param bounds  the bounds in the order of `Bounds`
 */
final class ColumnZones(
    val key: String, val dataType: DataType, val known: Array[Boolean], val rows: Array[Long], val nulls: Array[Long],
    val nans: Array[Long], val bounds: Bounds) {

  def length: Int = known.length
}

/** Distinct counts and lengths of one column, aligned with a [[FileList]]; -1 and NaN mean unknown. */
final class ColumnSizes(val distinct: Array[Long], val avgLen: Array[Double], val maxLen: Array[Long])

/**
 * Bounds of non-null values, one pair a file, in one of two orders that agree with Spark's ordering of the type:
 * `LongBounds` by signed 64-bit integers, `BytesBounds` by unsigned bytes.
 */
sealed trait Bounds {
  def hasLo(file: Int): Boolean
  def hasHi(file: Int): Boolean
  def loExact(file: Int): Boolean
  def hiExact(file: Int): Boolean
}

/** No bounds are kept for the type: only counts are known. */
case object NoBounds extends Bounds {
  override def hasLo(file: Int): Boolean = false
  override def hasHi(file: Int): Boolean = false
  override def loExact(file: Int): Boolean = false
  override def hiExact(file: Int): Boolean = false
}

/**
 * Bounds as integers: integral types, dates, timestamps and decimals up to 18 digits as they are, doubles as
 * `DoubleOrder.key`. An unknown lower bound is `Long.MinValue`, an unknown upper bound `Long.MaxValue`, not exact.
 */
final class LongBounds(val lo: Array[Long], val hi: Array[Long], val flags: Array[Byte]) extends Bounds {
  override def hasLo(file: Int): Boolean = (flags(file) & Bounds.HasLo) != 0
  override def hasHi(file: Int): Boolean = (flags(file) & Bounds.HasHi) != 0
  override def loExact(file: Int): Boolean = (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = (flags(file) & Bounds.HiExact) != 0
}

/**
 * Bounds as bytes: strings and binary as they are, decimals of more than 18 digits as 16 bytes big-endian with the sign bit
 * flipped. An unknown bound is null.
 */
final class BytesBounds(val lo: Array[Array[Byte]], val hi: Array[Array[Byte]], val flags: Array[Byte]) extends Bounds {
  override def hasLo(file: Int): Boolean = lo(file) != null
  override def hasHi(file: Int): Boolean = hi(file) != null
  override def loExact(file: Int): Boolean = (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = (flags(file) & Bounds.HiExact) != 0
}

object Bounds {
  val HasLo: Byte = 1
  val HasHi: Byte = 2
  val LoExact: Byte = 4
  val HiExact: Byte = 8
}
