package org.metastore.spark.store

import java.nio.{ByteBuffer, ByteOrder => Endian}
import java.util.Arrays

import org.apache.parquet.bytes.{ByteBufferInputStream, BytesInput}
import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2}
import org.apache.parquet.column.values.rle.RunLengthBitPackingHybridDecoder
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

/** Decodes a column chunk that is not nested into primitive arrays, page by page, in the encodings of docs/format.md. */
private[store] object ColumnDecoder {

  /** Integers, booleans as 0 and 1, doubles as `DoubleOrder.key`; `missing` where the value is null. */
  def longs(pages: ChunkPages, rows: Int, missing: Long): Array[Long] = {
    pages.memory.take(rows * 8L)
    val out = new Array[Long](rows)
    if (missing != 0) Arrays.fill(out, missing)
    decode(pages, rows, new LongSink(pages.leaf.physical, out, missing), null)
    out
  }

  /** As `longs`, and tells for each row whether it has a value. */
  def longsWithPresence(pages: ChunkPages, rows: Int): (Array[Long], Array[Boolean]) = {
    pages.memory.take(rows * 9L)
    val out = new Array[Long](rows)
    val present = new Array[Boolean](rows)
    decode(pages, rows, new LongSink(pages.leaf.physical, out, missing = 0), present)
    (out, present)
  }

  /** Doubles as they are; NaN where the value is null. */
  def doubles(pages: ChunkPages, rows: Int): Array[Double] = {
    val (keys, present) = longsWithPresence(pages, rows)
    pages.memory.take(rows * 8L)
    Array.tabulate(rows)(i => if (present(i)) DoubleOrder.value(keys(i)) else Double.NaN)
  }

  /** Bytes; null where the value is null. */
  def bytes(pages: ChunkPages, rows: Int): Array[Array[Byte]] = {
    pages.memory.take(rows * 8L)
    val out = new Array[Array[Byte]](rows)
    decode(pages, rows, new BytesSink(out, pages), null)
    out
  }

  /** @param present set where a row has a value; null: nobody asks */
  private def decode(pages: ChunkPages, rows: Int, sink: Sink, present: Array[Boolean]): Unit = {
    if (pages.leaf.repeated != 0 || pages.leaf.nullable > 1) throw new IllegalArgumentException("the column is nested")
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
      pages: ChunkPages, page: DataPage, first: Int, until: Int, sink: Sink, present: Array[Boolean]): Unit = {
    val isRequired = pages.leaf.nullable == 0
    val (levels, encoding, values) = page match {
      case v1: DataPageV1 if isRequired => (null, v1.getValueEncoding, whole(v1.getBytes))
      case v1: DataPageV1 if v1.getDlEncoding == ParquetEncoding.RLE =>
        val body = whole(v1.getBytes).order(Endian.LITTLE_ENDIAN)
        val length = body.getInt()
        if (length < 0 || length > body.remaining) throw new IllegalArgumentException("its levels are not as encoded")
        val levels = body.slice()
        levels.limit(length)
        body.position(body.position() + length)
        (levels, v1.getValueEncoding, body)
      case v2: DataPageV2 => (whole(v2.getDefinitionLevels), v2.getDataEncoding, whole(v2.getData))
      case other => throw new IllegalArgumentException(s"a page of kind ${other.getClass.getName}")
    }
    val run = if (isRequired) 1 else onlyLevel(levels, until - first)
    if (run == 1) {
      sink.fill(encoding, values, first, until)
      if (present != null) Arrays.fill(present, first, until, true)
    } else if (run < 0) mixed(levels, encoding, values, first, until, sink, present)
  }

  private def whole(bytes: BytesInput): ByteBuffer = bytes.toInputStream.slice(Math.toIntExact(bytes.size))

  /** Values first, without gaps; then each goes to its row, from the last to the first. */
  private def mixed(
      levels: ByteBuffer, encoding: ParquetEncoding, values: ByteBuffer, first: Int, until: Int, sink: Sink,
      present: Array[Boolean]): Unit = {
    LevelRuns.check(levels.duplicate(), 1, until - first)
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

  /** The level that all values of a page have, if one run says so: 1 all there, 0 all null; -1 they differ. */
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
    if ((header & 1) == 0 && (header >> 1) >= count && peek.hasRemaining) peek.get().toInt else -1
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
  override def fill(encoding: ParquetEncoding, values: ByteBuffer, from: Int, until: Int): Unit = (physical, encoding) match {
    case _ if from == until => ()
    case (INT64, ParquetEncoding.DELTA_BINARY_PACKED) => packed(values, from, until)
    case (INT32, ParquetEncoding.DELTA_BINARY_PACKED) =>
      packed(values, from, until)
      narrow(from, until)
    case (DOUBLE, ParquetEncoding.PLAIN) => keys(values.order(Endian.LITTLE_ENDIAN), from, until)
    case (BOOLEAN, ParquetEncoding.PLAIN) => bits(values, from, until)
    case (BOOLEAN, ParquetEncoding.RLE) => runs(values.order(Endian.LITTLE_ENDIAN), from, until)
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
    values.getInt() // the length of what follows
    LevelRuns.check(values.duplicate(), 1, until - from)
    val decoder = new RunLengthBitPackingHybridDecoder(1, ByteBufferInputStream.wrap(values))
    var row = from
    while (row < until) {
      out(row) = decoder.readInt().toLong
      row += 1
    }
  }
}

private final class BytesSink(out: Array[Array[Byte]], pages: ChunkPages) extends Sink {
  override def fill(encoding: ParquetEncoding, values: ByteBuffer, from: Int, until: Int): Unit =
    if (from < until) {
      if (encoding != ParquetEncoding.DELTA_BYTE_ARRAY) refuse(encoding)
      val start = values.arrayOffset + values.position()
      pages.borrow(values.array.length + (until - from) * 16L)
      PackedBytes.read(values.array, start, start + values.remaining, until - from, out, from, pages.memory)
    }

  override def move(from: Int, to: Int): Unit = out(to) = out(from)
  override def clear(row: Int): Unit = out(row) = null
}
