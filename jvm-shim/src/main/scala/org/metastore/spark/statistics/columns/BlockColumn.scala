package org.metastore.spark.statistics.columns

import org.metastore.spark.statistics.objects.{Block, ColumnRows, DecimalBytes, Encoding, RowGroup}

/**
 * One column of a block as stored, by data file: arrays of the block's number of files.
 *
 * @param lo of integers and doubles, else null
 * @param loBytes of binary values, else null
 */
private[statistics] final class BlockColumn(
    val present: Array[Boolean],
    val rows: Array[Long],
    val nulls: Array[Long],
    val nans: Array[Long],
    val lo: Array[Long],
    val hi: Array[Long],
    val loBytes: Array[Array[Byte]],
    val hiBytes: Array[Array[Byte]],
    val flags: Array[Byte])
  extends CacheWeight {

  override def weight: Long = {
    val fixed = present.length * (1L + 3 * 8 + 1) + (if (lo == null) 0 else present.length * 16L)
    fixed + size(loBytes) + size(hiBytes)
  }

  private def size(values: Array[Array[Byte]]): Long = {
    var sum = 0L
    var i = 0
    while (values != null && i < values.length) {
      sum += (if (values(i) == null) 8 else 24 + values(i).length)
      i += 1
    }
    sum
  }
}

/** Distinct counts and lengths of one column of a block, by data file; -1 and NaN are unknown. */
private[statistics] final class BlockSizes(
    val distinct: Array[Long],
    val avgLen: Array[Double],
    val maxLen: Array[Long])
  extends CacheWeight {
  override def weight: Long = distinct.length * 24L
}

/**
 * Exact sums of one column of a block, by data file: unscaled, big-endian two's complement; null is unknown.
 */
private[statistics] final class BlockSums(val sums: Array[Array[Byte]]) extends CacheWeight {
  override def weight: Long = sums.length * 40L
}

/**
 * Rows of the files of a block.
 *
 * @param files by ordinal; -1: unknown
 */
private[statistics] final class BlockRows(val files: Array[Long])

/** Turns the rows of a summary's row group into columns by data file, or those of zones by zone. */
private[statistics] final class BlockColumnLoader(
    block: Block,
    group: RowGroup,
    files: Int,
    field: String = "file") {
  private val spans = group.spans(files, field)
  private val rows = group.longs("rows", -1)
  private val nulls = group.longs("nulls", -1)
  private val nans = group.longs("nans", -1)
  private val loExact = exact("lo_exact")
  private val hiExact = exact("hi_exact")
  private lazy val longBounds = new NumberBounds("lo_long", "hi_long")
  private lazy val doubleBounds = new NumberBounds("lo_double", "hi_double")
  private lazy val binaryBounds = (group.bytes("lo_binary"), group.bytes("hi_binary"))

  /** Ordinals of the columns that the row group holds. */
  def columns: Seq[Int] = spans.keys.filter(block.columns.indices.contains).toSeq

  def load(column: Int): BlockColumn = {
    val span = spans(column)
    val entry = block.columns(column)
    entry.encoding match {
      case Some(Encoding.LongValues) => numbers(span, longBounds)
      case Some(Encoding.DoubleValues) => numbers(span, doubleBounds)
      case Some(Encoding.BinaryValues) => binary(span, signed = entry.dataType.startsWith("decimal"))
      case None => counts(span, null, null, null, null, new Array[Byte](files))
    }
  }

  private def numbers(span: ColumnRows, bounds: NumberBounds): BlockColumn =
    counts(
      span,
      span.scatter(bounds.lo, Long.MinValue),
      span.scatter(bounds.hi, Long.MaxValue),
      null,
      null,
      span.scatter(bounds.flags))

  private def binary(span: ColumnRows, signed: Boolean): BlockColumn = {
    val (lows, highs) = binaryBounds
    val lo = span.scatter(lows)
    val hi = span.scatter(highs)
    val flags = span.scatter(exactness)
    if (!signed) counts(span, null, null, lo, hi, flags)
    else counts(span, null, null, lo.map(DecimalBytes.ordered), hi.map(DecimalBytes.ordered), flags)
  }

  private def counts(
      span: ColumnRows,
      lo: Array[Long],
      hi: Array[Long],
      loBytes: Array[Array[Byte]],
      hiBytes: Array[Array[Byte]],
      flags: Array[Byte]): BlockColumn =
    new BlockColumn(
      span.present,
      span.scatter(rows, -1),
      span.scatter(nulls, -1),
      span.scatter(nans, -1),
      lo,
      hi,
      loBytes,
      hiBytes,
      flags)

  /** Whether bounds are values; of several files together no bound is known to be one. */
  private def exact(field: String): Array[Long] =
    if (group.has(field)) group.longs(field, 0)
    else new Array[Long](rows.length)

  private lazy val exactness: Array[Byte] = flagsOf(loExact, hiExact)

  private def flagsOf(lo: Array[Long], hi: Array[Long]): Array[Byte] = {
    val (loFlag, hiFlag) = (Bounds.LoExact.toInt, Bounds.HiExact.toInt)
    val flags = new Array[Byte](lo.length)
    var i = 0
    while (i < flags.length) {
      flags(i) = ((if (lo(i) == 1) loFlag else 0) | (if (hi(i) == 1) hiFlag else 0)).toByte
      i += 1
    }
    flags
  }

  private final class NumberBounds(loField: String, hiField: String) {
    private val (lows, hasLo) = group.presentLongs(loField)
    private val (highs, hasHi) = group.presentLongs(hiField)

    val flags: Array[Byte] = exactness.clone()
    val lo: Array[Long] = lows
    val hi: Array[Long] = highs
    for (i <- flags.indices) {
      if (hasLo(i)) flags(i) = (flags(i) | Bounds.HasLo).toByte
      else {
        lo(i) = Long.MinValue
        flags(i) = (flags(i) & ~Bounds.LoExact).toByte
      }
      if (hasHi(i)) flags(i) = (flags(i) | Bounds.HasHi).toByte
      else {
        hi(i) = Long.MaxValue
        flags(i) = (flags(i) & ~Bounds.HiExact).toByte
      }
    }
  }
}
