package org.metastore.spark.store

import java.util.Arrays

import org.apache.parquet.bytes.{BytesUtils, ByteBufferInputStream}
import org.apache.parquet.column.{Encoding => ParquetEncoding, ValuesType}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2}
import org.apache.parquet.column.values.ValuesReader
import org.apache.parquet.column.values.rle.RunLengthBitPackingHybridDecoder
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

/** Decodes a column chunk that is not nested into primitive arrays, page by page, without an object a value. */
private[store] object FlatDecoder {

  /** Integers, booleans as 0 and 1, doubles as `DoubleOrder.key`; `missing` where the value is null. */
  def longs(pages: ChunkPages, rows: Int, missing: Long): Array[Long] = {
    val out = new Array[Long](rows)
    if (missing != 0) Arrays.fill(out, missing)
    decode(pages, rows, longSink(pages, out), null)
    out
  }

  /** As `longs`, and tells for each row whether it has a value. */
  def presentLongs(pages: ChunkPages, rows: Int): (Array[Long], Array[Boolean]) = {
    val out = new Array[Long](rows)
    val present = new Array[Boolean](rows)
    decode(pages, rows, longSink(pages, out), present)
    (out, present)
  }

  /** Doubles as they are; NaN where the value is null. */
  def doubles(pages: ChunkPages, rows: Int): Array[Double] = {
    val out = new Array[Double](rows)
    Arrays.fill(out, Double.NaN)
    decode(pages, rows, new DoubleSink(out), null)
    out
  }

  /** Bytes; null where the value is null. */
  def bytes(pages: ChunkPages, rows: Int): Array[Array[Byte]] = {
    val out = new Array[Array[Byte]](rows)
    decode(pages, rows, new BytesSink(out), null)
    out
  }

  private def longSink(pages: ChunkPages, out: Array[Long]): Sink = pages.descriptor.getPrimitiveType.getPrimitiveTypeName match {
    case INT32 => new IntSink(out)
    case INT64 => new LongSink(out)
    case BOOLEAN => new BooleanSink(out)
    case DOUBLE => new DoubleKeySink(out)
    case other => throw new IllegalArgumentException(s"$other is no number")
  }

  /** @param present set where a row has a value; null: nobody asks */
  private def decode(pages: ChunkPages, rows: Int, sink: Sink, present: Array[Boolean]): Unit = {
    if (pages.descriptor.getMaxRepetitionLevel != 0 || pages.descriptor.getMaxDefinitionLevel > 1) throw new IllegalArgumentException("the column is nested")
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
    val count = page.getValueCount
    val (levels, encoding, in) = page match {
      case v1: DataPageV1 if v1.getDlEncoding == ParquetEncoding.RLE || isRequired(pages) =>
        val in = v1.getBytes.toInputStream
        (if (isRequired(pages)) null else in.slice(BytesUtils.readIntLittleEndian(in)), v1.getValueEncoding, in)
      case v2: DataPageV2 =>
        val levels = v2.getDefinitionLevels.toInputStream
        (levels.slice(levels.available()), v2.getDataEncoding, v2.getData.toInputStream)
      case other => throw new IllegalArgumentException(s"a page of kind ${other.getClass.getName}")
    }
    val run = if (isRequired(pages)) 1 else onlyLevel(levels, count)
    if (run == 1) {
      sink.fill(valuesReader(pages, encoding, count, in), first, until)
      if (present != null) Arrays.fill(present, first, until, true)
    } else if (run < 0) {
      val decoder = new RunLengthBitPackingHybridDecoder(1, ByteBufferInputStream.wrap(levels))
      mixed(decoder, valuesReader(pages, encoding, count, in), first, until, sink, present)
    }
  }

  private def mixed(
      levels: RunLengthBitPackingHybridDecoder, reader: ValuesReader, first: Int, until: Int, sink: Sink,
      present: Array[Boolean]): Unit = {
    var row = first
    while (row < until) {
      if (levels.readInt() == 1) {
        sink.fill(reader, row, row + 1)
        if (present != null) present(row) = true
      }
      row += 1
    }
  }

  private def isRequired(pages: ChunkPages): Boolean = pages.descriptor.getMaxDefinitionLevel == 0

  /** The level that all values of a page have, if one run says so: 1 all there, 0 all null; -1 they differ. */
  private def onlyLevel(levels: java.nio.ByteBuffer, count: Int): Int = {
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

  private def valuesReader(pages: ChunkPages, encoding: ParquetEncoding, count: Int, in: ByteBufferInputStream): ValuesReader = {
    val reader = encoding.getValuesReader(pages.descriptor, ValuesType.VALUES)
    reader.initFromPage(count, in)
    reader
  }
}

/** Takes decoded values into an array. A class each, so that every loop calls one kind of reader. */
private sealed abstract class Sink {

  /** Puts the reader's next values into the rows from `from` until `until`. */
  def fill(reader: ValuesReader, from: Int, until: Int): Unit
}

private final class IntSink(out: Array[Long]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = reader.readInteger().toLong
      row += 1
    }
  }
}

private final class LongSink(out: Array[Long]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = reader.readLong()
      row += 1
    }
  }
}

private final class BooleanSink(out: Array[Long]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = if (reader.readBoolean()) 1L else 0L
      row += 1
    }
  }
}

private final class DoubleKeySink(out: Array[Long]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = DoubleOrder.key(reader.readDouble())
      row += 1
    }
  }
}

private final class DoubleSink(out: Array[Double]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = reader.readDouble()
      row += 1
    }
  }
}

private final class BytesSink(out: Array[Array[Byte]]) extends Sink {
  override def fill(reader: ValuesReader, from: Int, until: Int): Unit = {
    var row = from
    while (row < until) {
      out(row) = reader.readBytes().getBytesUnsafe // nobody writes into it: the reader makes a new one each time
      row += 1
    }
  }
}
