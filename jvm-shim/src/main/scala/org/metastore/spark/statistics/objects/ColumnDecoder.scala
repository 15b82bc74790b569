package org.metastore.spark.statistics.objects

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

import org.apache.parquet.bytes.{ByteBufferInputStream, BytesInput}
import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2}
import org.apache.parquet.column.values.rle.RunLengthBitPackingHybridDecoder
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

/**
 * Decodes a column chunk that is not nested into primitive arrays, page by page, in the encodings of
 * docs/format.md.
 */
private[statistics] object ColumnDecoder {

  /** Integers, booleans as 0 and 1, doubles as `DoubleOrder.key`; `missing` where the value is null. */
  def longs(pages: ChunkPages, rows: Int, missing: Long): Array[Long] = {
    val out = new Array[Long](rows)
    if (missing != 0) Arrays.fill(out, missing)
    decode(pages, rows, new LongSink(physical(pages), out, missing), null)
    out
  }

  /** The values as `longs` returns them, and for each row whether it has one. */
  def longsWithPresence(pages: ChunkPages, rows: Int): (Array[Long], Array[Boolean]) = {
    val out = new Array[Long](rows)
    val present = new Array[Boolean](rows)
    decode(pages, rows, new LongSink(physical(pages), out, missing = 0), present)
    (out, present)
  }

  /** Doubles as they are; NaN where the value is null. */
  def doubles(pages: ChunkPages, rows: Int): Array[Double] = {
    val (keys, present) = longsWithPresence(pages, rows)
    Array.tabulate(rows)(i => if (present(i)) DoubleOrder.value(keys(i)) else Double.NaN)
  }

  /** Bytes; null where the value is null. */
  def bytes(pages: ChunkPages, rows: Int): Array[Array[Byte]] = {
    val out = new Array[Array[Byte]](rows)
    decode(pages, rows, new BytesSink(physical(pages), pages.leaf.getPrimitiveType.getTypeLength, out), null)
    out
  }

  private def physical(pages: ChunkPages): PrimitiveTypeName =
    pages.leaf.getPrimitiveType.getPrimitiveTypeName

  /** @param present set to true for each row with a value; null if the caller does not need it */
  private def decode(pages: ChunkPages, rows: Int, sink: Sink, present: Array[Boolean]): Unit = {
    if (pages.leaf.getMaxRepetitionLevel != 0 || pages.leaf.getMaxDefinitionLevel > 1)
      throw new IllegalArgumentException("the column is nested")
    if (pages.getTotalValueCount != rows) throw new IllegalArgumentException("columns differ in length")
    var row = 0
    var page = pages.readPage()
    while (page != null) {
      val until = row + page.getValueCount
      if (until > rows) throw new IllegalArgumentException("columns differ in length")
      decodePage(pages, page, row, until, sink, present)
      row = until
      page = pages.readPage()
    }
  }

  private def decodePage(
      pages: ChunkPages,
      page: DataPage,
      first: Int,
      until: Int,
      sink: Sink,
      present: Array[Boolean]): Unit = {
    val isRequired = pages.leaf.getMaxDefinitionLevel == 0
    val (levels, encoding, values) = page match {
      case v1: DataPageV1 if isRequired => (null, v1.getValueEncoding, allBytes(v1.getBytes))
      case v1: DataPageV1 if v1.getDlEncoding == ParquetEncoding.RLE =>
        val body = allBytes(v1.getBytes).order(ByteOrder.LITTLE_ENDIAN)
        val length = body.getInt()
        if (length < 0 || length > body.remaining)
          throw new IllegalArgumentException("its levels are not as encoded")
        val levels = body.slice()
        levels.limit(length)
        body.position(body.position() + length)
        (levels, v1.getValueEncoding, body)
      case v2: DataPageV2 => (allBytes(v2.getDefinitionLevels), v2.getDataEncoding, allBytes(v2.getData))
      case other => throw new IllegalArgumentException(s"a page of kind ${other.getClass.getName}")
    }
    val run = if (isRequired) 1 else onlyLevel(levels, until - first)
    if (run == 1) {
      sink.fill(encoding, values, first, until)
      if (present != null) Arrays.fill(present, first, until, true)
    } else if (run < 0) mixed(levels, encoding, values, first, until, sink, present)
  }

  private def allBytes(bytes: BytesInput): ByteBuffer = bytes.toInputStream.slice(Math.toIntExact(bytes.size))

  /** Values first, without gaps; then each goes to its row, from the last to the first. */
  private def mixed(
      levels: ByteBuffer,
      encoding: ParquetEncoding,
      values: ByteBuffer,
      first: Int,
      until: Int,
      sink: Sink,
      present: Array[Boolean]): Unit = {
    val decoder = new RunLengthBitPackingHybridDecoder(1, ByteBufferInputStream.wrap(levels))
    val there = Array.fill(until - first)(decoder.readInt() == 1)
    var from = first + there.count(identity)
    sink.fill(encoding, values, first, from)
    var row = until - 1
    while (row >= first) {
      if (there(row - first)) {
        from -= 1
        sink.move(from, row)
      } else sink.clear(row)
      row -= 1
    }
    if (present != null) System.arraycopy(there, 0, present, first, there.length)
  }

  /** The level of all values of a page if it is one run: 1 all present, 0 all null; else -1. */
  private def onlyLevel(levels: ByteBuffer, count: Int): Int = {
    val peek = levels.duplicate()
    var header = 0L
    var shift = 0
    var byte = 0x80
    while ((byte & 0x80) != 0 && shift < 35 && peek.hasRemaining) {
      byte = peek.get()
      header |= (byte & 0x7fL) << shift
      shift += 7
    }
    if ((header & 1) == 0 && (header >> 1) >= count && peek.hasRemaining) peek.get().toInt
    else -1
  }
}

/** Takes decoded values into an array. */
private sealed abstract class Sink {

  /** Puts the page's values into the rows from `from` until `until`, which must be all of them. */
  def fill(encoding: ParquetEncoding, values: ByteBuffer, from: Int, until: Int): Unit

  /** Moves a value to another row; `clear` makes a row null again. */
  def move(from: Int, to: Int): Unit

  def clear(row: Int): Unit

  protected def refuse(encoding: ParquetEncoding): Nothing =
    throw new IllegalArgumentException(s"the encoding $encoding is not the format's")
}

private final class LongSink(physical: PrimitiveTypeName, out: Array[Long], missing: Long) extends Sink {
  override def fill(encoding: ParquetEncoding, values: ByteBuffer, from: Int, until: Int): Unit =
    (physical, encoding) match {
      case _ if from == until => ()
      case (INT64, ParquetEncoding.DELTA_BINARY_PACKED) => packed(values, from, until)
      case (INT32, ParquetEncoding.DELTA_BINARY_PACKED) =>
        packed(values, from, until)
        narrow(from, until)
      case (DOUBLE, ParquetEncoding.PLAIN) => keys(values.order(ByteOrder.LITTLE_ENDIAN), from, until)
      case (BOOLEAN, ParquetEncoding.PLAIN) => bits(values, from, until)
      case (BOOLEAN, ParquetEncoding.RLE) => runs(values.order(ByteOrder.LITTLE_ENDIAN), from, until)
      case _ => refuse(encoding)
    }

  override def move(from: Int, to: Int): Unit = out(to) = out(from)
  override def clear(row: Int): Unit = out(row) = missing

  private def packed(values: ByteBuffer, from: Int, until: Int): Unit = {
    val start = values.arrayOffset + values.position()
    new PackedIntegers(values.array, start, start + values.remaining).read(until - from, out, from)
  }

  private def narrow(from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = out(row).toInt.toLong
      row += 1
    }
  }

  private def keys(values: ByteBuffer, from: Int, until: Int): Unit = {
    val base = values.position() - from * 8
    var row = from
    while (row < until) {
      out(row) = DoubleOrder.key(values.getDouble(base + row * 8))
      row += 1
    }
  }

  private def bits(values: ByteBuffer, from: Int, until: Int): Unit = {
    val base = values.position()
    var row = from
    while (row < until) {
      val i = row - from
      out(row) = (values.get(base + (i >> 3)) >> (i & 7)) & 1L
      row += 1
    }
  }

  private def runs(values: ByteBuffer, from: Int, until: Int): Unit = {
    values.getInt() // the length of the rest
    val decoder = new RunLengthBitPackingHybridDecoder(1, ByteBufferInputStream.wrap(values))
    var row = from
    while (row < until) {
      out(row) = decoder.readInt().toLong
      row += 1
    }
  }
}

private final class BytesSink(physical: PrimitiveTypeName, width: Int, out: Array[Array[Byte]]) extends Sink {
  override def fill(encoding: ParquetEncoding, values: ByteBuffer, from: Int, until: Int): Unit =
    (physical, encoding) match {
      case _ if from == until => ()
      case (BINARY, ParquetEncoding.DELTA_BYTE_ARRAY) =>
        val start = values.arrayOffset + values.position()
        PackedBytes.read(values.array, start, start + values.remaining, until - from, out, from)
      case (FIXED_LEN_BYTE_ARRAY, ParquetEncoding.PLAIN) =>
        (from until until).foreach { row =>
          out(row) = new Array[Byte](width)
          values.get(out(row))
        }
      case _ => refuse(encoding)
    }

  override def move(from: Int, to: Int): Unit = out(to) = out(from)
  override def clear(row: Int): Unit = out(row) = null
}

/**
 * DELTA_BINARY_PACKED integers, straight from bytes into an array: parquet-mr's reader copies every value
 * twice, and planning decodes millions. A cold look-up of ten columns in 65,536 data files took 72 ms with
 * Spark's vectorized readers, and 42 ms with these (benchmarks/index_lookup.py, store B, on one machine).
 */
private[statistics] final class PackedIntegers(bytes: Array[Byte], private var at: Int, end: Int) {
  import PackedIntegers._
  private val words = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)

  /** The position of the next unread byte. */
  def position: Int = at

  /** Reads all of the integers, of which there must be `count`, into `out` from `first` on. */
  def read(count: Int, out: Array[Long], first: Int): Unit = {
    val valuesABlock = checked(unsigned(), MaxBlock)
    val miniBlocks = checked(unsigned(), valuesABlock)
    val valuesAMiniBlock = if (miniBlocks == 0) 0 else valuesABlock / miniBlocks
    if (valuesAMiniBlock == 0 || valuesAMiniBlock % 32 != 0 || unsigned() != count) refuse()
    var last = signed()
    if (count > 0) out(first) = last
    var row = first + 1
    val until = first + count
    while (row < until) {
      val smallest = signed()
      val widths = at
      at += miniBlocks
      if (at > end) refuse()
      var mini = 0
      while (mini < miniBlocks && row < until) {
        val width = bytes(widths + mini) & 0xff
        val taken = math.min(valuesAMiniBlock, until - row)
        val length = valuesAMiniBlock / 8 * width
        if (width > 64 || length > end - at) refuse()
        last = unpack(width, smallest, last, out, row, row + taken)
        at += length
        row += taken
        mini += 1
      }
    }
  }

  private def unpack(
      width: Int,
      smallest: Long,
      before: Long,
      out: Array[Long],
      from: Int,
      until: Int): Long =
    if (width == 0) ramp(smallest, before, out, from, until)
    else if (width <= WordWidth && at + (until - from) * width / 8 + 8 <= bytes.length) {
      val mask = (1L << width) - 1
      var last = before
      var bit = at.toLong * 8
      var row = from
      while (row < until) {
        last += smallest + ((words.getLong((bit >>> 3).toInt) >>> (bit & 7)) & mask)
        out(row) = last
        bit += width
        row += 1
      }
      last
    } else bitwise(width, smallest, before, out, from, until)

  private def ramp(step: Long, before: Long, out: Array[Long], from: Int, until: Int): Long = {
    var last = before
    var row = from
    while (row < until) {
      last += step
      out(row) = last
      row += 1
    }
    last
  }

  /** Reads values that may span more than eight bytes, or that stand at the end of the array. */
  private def bitwise(
      width: Int,
      smallest: Long,
      before: Long,
      out: Array[Long],
      from: Int,
      until: Int): Long = {
    var last = before
    var bit = at.toLong * 8
    var row = from
    while (row < until) {
      var value = 0L
      var i = 0
      while (i < width) {
        value |= ((bytes((bit >>> 3).toInt) >>> (bit & 7).toInt) & 1L) << i
        bit += 1
        i += 1
      }
      last += smallest + value
      out(row) = last
      row += 1
    }
    last
  }

  private def unsigned(): Long = {
    var value = 0L
    var shift = 0
    var byte = 0x80
    while ((byte & 0x80) != 0) {
      if (shift > 63 || at >= end) refuse()
      byte = bytes(at)
      value |= (byte & 0x7fL) << shift
      shift += 7
      at += 1
    }
    value
  }

  private def signed(): Long = {
    val value = unsigned()
    (value >>> 1) ^ -(value & 1)
  }

  private def checked(value: Long, limit: Int): Int = {
    if (value <= 0 || value > limit) refuse()
    value.toInt
  }

  private def refuse(): Nothing = throw new IllegalArgumentException("its integers are not as encoded")
}

private object PackedIntegers {
  private val MaxBlock = 1 << 20
  private val WordWidth = 57 // with 7 bits of the byte it begins in, the widest value that eight bytes hold
}

/** DELTA_BYTE_ARRAY values, straight from bytes: each is a prefix of the one before and a suffix. */
private[statistics] object PackedBytes {

  /**
   * Reads `count` values into `out` from `first` on. Equal neighbours share an array, which must not be
   * changed.
   */
  def read(
      bytes: Array[Byte],
      start: Int,
      end: Int,
      count: Int,
      out: Array[Array[Byte]],
      first: Int): Unit = {
    val (prefixes, suffixes) = (new Array[Long](count), new Array[Long](count))
    val lengths = new PackedIntegers(bytes, start, end)
    lengths.read(count, prefixes, 0)
    val suffixLengths = new PackedIntegers(bytes, lengths.position, end)
    suffixLengths.read(count, suffixes, 0)
    var at = suffixLengths.position
    var last = Array.emptyByteArray
    var i = 0
    while (i < count) {
      val (shared, added) = (prefixes(i), suffixes(i))
      if (shared < 0 || shared > last.length || added < 0 || added > end - at)
        throw new IllegalArgumentException("its byte strings are not as encoded")
      if (added > 0 || shared < last.length) {
        val value = new Array[Byte]((shared + added).toInt)
        System.arraycopy(last, 0, value, 0, shared.toInt)
        System.arraycopy(bytes, at, value, shared.toInt, added.toInt)
        at += added.toInt
        last = value
      }
      out(first + i) = last
      i += 1
    }
  }
}
