package org.metastore.spark.store

/**
 * Turns the rows of a summary's row group into columns by data file, or those of zones by zone. Each field is decoded once for
 * all its columns.
 *
 * @param place the field that tells the ordinal of a row, of which there are `files`
 */
private[store] final class BlockColumnLoader(block: Block, group: RowGroup, files: Int, place: String = "file") {
  private val spans = group.spans(files, place)
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
    group.memory.take(files * BlockColumn.MostFixedBytes)
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
      span, span.scatter(bounds.lo, Long.MinValue), span.scatter(bounds.hi, Long.MaxValue), null, null,
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
      span: ColumnRows, lo: Array[Long], hi: Array[Long], loBytes: Array[Array[Byte]], hiBytes: Array[Array[Byte]],
      flags: Array[Byte]): BlockColumn =
    new BlockColumn(
      span.present, span.scatter(rows, -1), span.scatter(nulls, -1), span.scatter(nans, -1), lo, hi, loBytes, hiBytes, flags)

  /** Of many files together no bound is known to be a value of theirs. */
  private def exact(field: String): Array[Long] = if (group.has(field)) group.longs(field, 0) else new Array[Long](rows.length)

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
    flags.indices.foreach { i =>
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
