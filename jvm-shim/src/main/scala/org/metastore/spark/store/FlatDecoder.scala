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

  /** Puts the value that the reader stands at into row `row` of what is being decoded. */
  private trait Sink {
    def put(reader: ValuesReader, row: Int): Unit
  }

  /** Integers, booleans as 0 and 1, doubles as `DoubleOrder.key`; `missing` where the value is null. */
  def longs(pages: ChunkPages, rows: Int, missing: Long): Array[Long] = {
    val out = new Array[Long](rows)
    if (missing != 0) Arrays.fill(out, missing)
    decode(pages, rows, longSink(pages, out))
    out
  }

  /** Doubles as they are; NaN where the value is null. */
  def doubles(pages: ChunkPages, rows: Int): Array[Double] = {
    val out = Array.fill(rows)(Double.NaN)
    decode(pages, rows, (reader, row) => out(row) = reader.readDouble())
    out
  }

  /** Bytes; null where the value is null. */
  def bytes(pages: ChunkPages, rows: Int): Array[Array[Byte]] = {
    val out = new Array[Array[Byte]](rows)
    decode(pages, rows, (reader, row) => out(row) = reader.readBytes().getBytes)
    out
  }

  /** As `longs`, and tells for each row whether it has a value. */
  def presentLongs(pages: ChunkPages, rows: Int): (Array[Long], Array[Boolean]) = {
    val out = new Array[Long](rows)
    val present = new Array[Boolean](rows)
    val sink = longSink(pages, out)
    decode(pages, rows, (reader, row) => {
      present(row) = true
      sink.put(reader, row)
    })
    (out, present)
  }

  private def longSink(pages: ChunkPages, out: Array[Long]): Sink =
    pages.descriptor.getPrimitiveType.getPrimitiveTypeName match {
      case INT32 => (reader, row) => out(row) = reader.readInteger().toLong
      case INT64 => (reader, row) => out(row) = reader.readLong()
      case BOOLEAN => (reader, row) => out(row) = if (reader.readBoolean()) 1L else 0L
      case DOUBLE => (reader, row) => out(row) = DoubleOrder.key(reader.readDouble())
      case other => throw new IllegalArgumentException(s"$other is no number")
    }

  private def decode(pages: ChunkPages, rows: Int, sink: Sink): Unit = {
    if (pages.descriptor.getMaxRepetitionLevel != 0) throw new IllegalArgumentException("the column is nested")
    if (pages.getTotalValueCount != rows) throw new IllegalArgumentException("columns differ in length")
    var row = 0
    var page = pages.readPage()
    while (page != null) {
      if (row + page.getValueCount > rows) throw new IllegalArgumentException("columns differ in length")
      decodePage(pages, page, row, sink)
      row += page.getValueCount
      page = pages.readPage()
    }
  }

  private def decodePage(pages: ChunkPages, page: DataPage, first: Int, sink: Sink): Unit = {
    val count = page.getValueCount
    val required = pages.descriptor.getMaxDefinitionLevel == 0
    val (levels, values) = page match {
      case v1: DataPageV1 =>
        val in = v1.getBytes.toInputStream
        val definition = v1.getDlEncoding.getValuesReader(pages.descriptor, ValuesType.DEFINITION_LEVEL)
        definition.initFromPage(count, in)
        (() => definition.readInteger(), valuesReader(pages, v1.getValueEncoding, count, in))
      case v2: DataPageV2 =>
        val width = BytesUtils.getWidthFromMaxInt(pages.descriptor.getMaxDefinitionLevel)
        val definition = new RunLengthBitPackingHybridDecoder(width, v2.getDefinitionLevels.toInputStream)
        (() => definition.readInt(), valuesReader(pages, v2.getDataEncoding, count, v2.getData.toInputStream))
      case other => throw new IllegalArgumentException(s"a page of kind ${other.getClass.getName}")
    }
    var i = 0
    if (required) while (i < count) { sink.put(values, first + i); i += 1 }
    else while (i < count) { if (levels() == 1) sink.put(values, first + i); i += 1 }
  }

  private def valuesReader(pages: ChunkPages, encoding: ParquetEncoding, count: Int, in: ByteBufferInputStream): ValuesReader = {
    val reader = encoding.getValuesReader(pages.descriptor, ValuesType.VALUES)
    reader.initFromPage(count, in)
    reader
  }
}
