package org.metastore.spark.statistics.objects

import java.nio.ByteOrder

import org.apache.parquet.bytes.ByteBufferInputStream
import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2}
import org.apache.parquet.column.values.deltastrings.DeltaByteArrayReader
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

import org.apache.spark.sql.execution.datasources.parquet.{
  VectorizedDeltaBinaryPackedReader, VectorizedPlainValuesReader, VectorizedRleValuesReader
}
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector
import org.apache.spark.sql.types.{BooleanType, IntegerType, LongType}

/** Decodes a column chunk that is not nested into arrays, page by page, in the encodings of docs/format.md. */
private[statistics] object ColumnDecoder {

  /** Integers, booleans as 0 and 1, doubles as `DoubleOrder.key`; `missing` where the value is null. */
  def longs(pages: ChunkPages, rows: Int, missing: Long): Array[Long] = {
    val out = if (missing == 0) new Array[Long](rows) else Fill.longs(rows, missing)
    new ColumnDecoder(pages, rows).decode(out, PageValues.longs)
    out
  }

  /** As `longs`, and tells for each row whether it has a value. */
  def longsWithPresence(pages: ChunkPages, rows: Int): (Array[Long], Array[Boolean]) = {
    val out = new Array[Long](rows)
    val present = new Array[Boolean](rows)
    new ColumnDecoder(pages, rows, Some(present)).decode(out, PageValues.longs)
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
    new ColumnDecoder(pages, rows).decode(out, PageValues.bytes)
    out
  }
}

/** @param present set where a row has a value, if somebody asks */
private final class ColumnDecoder(pages: ChunkPages, rows: Int, present: Option[Array[Boolean]] = None) {
  private val isRequired = pages.leaf.getMaxDefinitionLevel == 0
  private val physical = pages.leaf.getPrimitiveType.getPrimitiveTypeName

  /** Puts the values into their places of an array: nothing is put where there is none. */
  def decode(out: AnyRef, values: PageValues.Reader): Unit = {
    if (pages.leaf.getMaxRepetitionLevel != 0 || pages.leaf.getMaxDefinitionLevel > 1)
      throw new IllegalArgumentException("the column is nested")
    if (pages.getTotalValueCount != rows) throw new IllegalArgumentException("columns differ in length")
    var row = 0
    Iterator.continually(pages.readPage()).takeWhile(_ != null).foreach { page => // scalastyle:ignore
      val count = page.getValueCount
      if (row + count > rows) throw new IllegalArgumentException("columns differ in length")
      ParquetFooter.inMemory(decodePage(page, count, row, out, values))
      row += count
    }
  }

  private def decodePage(page: DataPage, count: Int, first: Int, out: AnyRef, values: PageValues.Reader): Unit = {
    val (levels, encoding, body) = page match {
      case v1: DataPageV1 =>
        val body = v1.getBytes.toInputStream // levels with their length, then values
        (if (isRequired) None else Some(PageValues.runs(body, count, hasLength = true)), v1.getValueEncoding, body)
      case v2: DataPageV2 =>
        val levels = if (isRequired) None else Some(PageValues.runs(v2.getDefinitionLevels.toInputStream, count, hasLength = false))
        (levels, v2.getDataEncoding, v2.getData.toInputStream)
      case other => throw new IllegalArgumentException(s"a page of kind ${other.getClass.getName}")
    }
    val number = levels.fold(count)(PageValues.count)
    val there = levels.filter(_ => number < count)
    if (number > 0) {
      val decoded = values(physical, encoding, body, number)
      there.fold(System.arraycopy(decoded, 0, out, first, count))(place(decoded, _, out, first))
    }
    present.foreach { all =>
      there.fold(java.util.Arrays.fill(all, first, first + count, true))(System.arraycopy(_, 0, all, first, count))
    }
  }

  /** Values without gaps go to the rows that have one, run by run. */
  private def place(decoded: AnyRef, there: Array[Boolean], out: AnyRef, first: Int): Unit = {
    var (row, from) = (0, 0)
    while (row < there.length) {
      var until = row
      while (until < there.length && there(until)) until += 1
      System.arraycopy(decoded, from, out, first + row, until - row)
      from += until - row
      row = until + 1
    }
  }
}

/** The values of one page, nulls left out, by the readers of Spark and of parquet-mr. */
private[statistics] object PageValues {
  type Reader = (PrimitiveTypeName, ParquetEncoding, ByteBufferInputStream, Int) => AnyRef

  val longs: Reader = (physical, encoding, body, count) => (physical, encoding) match {
    case (INT64, ParquetEncoding.DELTA_BINARY_PACKED) => packedLongs(body, count)
    case (INT32, ParquetEncoding.DELTA_BINARY_PACKED) => packedInts(body, count)
    case (DOUBLE, ParquetEncoding.PLAIN) => keys(body, count)
    case (BOOLEAN, ParquetEncoding.PLAIN) => asLongs(bits(body, count))
    case (BOOLEAN, ParquetEncoding.RLE) => asLongs(runs(body, count, hasLength = true))
    case _ => refuse(encoding)
  }

  val bytes: Reader = (_, encoding, body, count) => encoding match {
    case ParquetEncoding.DELTA_BYTE_ARRAY =>
      val reader = new DeltaByteArrayReader
      reader.initFromPage(count, body)
      Array.fill(count)(reader.readBytes().getBytesUnsafe)
    case _ => refuse(encoding)
  }

  /** Levels, or truth values. */
  def runs(body: ByteBufferInputStream, count: Int, hasLength: Boolean): Array[Boolean] = {
    val (reader, vector) = (new VectorizedRleValuesReader(1, hasLength), new OnHeapColumnVector(count, BooleanType))
    reader.initFromPage(count, body)
    reader.readBooleans(count, vector, 0)
    vector.getBooleans(0, count)
  }

  /** How many are true. Scala's own `count` makes an object of every element. */
  def count(flags: Array[Boolean]): Int = {
    var (i, found) = (0, 0)
    while (i < flags.length) {
      if (flags(i)) found += 1
      i += 1
    }
    found
  }

  private def asLongs(flags: Array[Boolean]): Array[Long] = {
    val out = new Array[Long](flags.length)
    var i = 0
    while (i < out.length) {
      if (flags(i)) out(i) = 1
      i += 1
    }
    out
  }

  private def bits(body: ByteBufferInputStream, count: Int): Array[Boolean] = {
    val (reader, vector) = (new VectorizedPlainValuesReader, new OnHeapColumnVector(count, BooleanType))
    reader.initFromPage(count, body)
    reader.readBooleans(count, vector, 0)
    vector.getBooleans(0, count)
  }

  private def packedLongs(body: ByteBufferInputStream, count: Int): Array[Long] = {
    val (reader, vector) = (new VectorizedDeltaBinaryPackedReader, new OnHeapColumnVector(count, LongType))
    reader.initFromPage(count, body)
    reader.readLongs(count, vector, 0)
    vector.getLongs(0, count)
  }

  /** Their deltas wrap at 32 bits. */
  private def packedInts(body: ByteBufferInputStream, count: Int): Array[Long] = {
    val (reader, vector) = (new VectorizedDeltaBinaryPackedReader, new OnHeapColumnVector(count, IntegerType))
    reader.initFromPage(count, body)
    reader.readIntegers(count, vector, 0)
    java.util.Arrays.stream(vector.getInts(0, count)).asLongStream.toArray
  }

  private def keys(body: ByteBufferInputStream, count: Int): Array[Long] = {
    val doubles = body.slice(count * java.lang.Double.BYTES).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer
    val out = new Array[Long](count)
    var i = 0
    while (i < count) {
      out(i) = DoubleOrder.key(doubles.get(i))
      i += 1
    }
    out
  }

  private def refuse(encoding: ParquetEncoding): Nothing = throw new IllegalArgumentException(s"the encoding $encoding is not the format's")
}
