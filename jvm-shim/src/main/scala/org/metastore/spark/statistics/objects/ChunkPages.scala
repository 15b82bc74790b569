package org.metastore.spark.statistics.objects

import java.io.ByteArrayInputStream

import com.github.luben.zstd.Zstd
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.column.{ColumnDescriptor, Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2, DictionaryPage, PageReader}
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.format.{CompressionCodec, Encoding => StoredEncoding, PageHeader, PageType, Util}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.schema.Types
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

import org.metastore.spark.reason.DamagedObjectException

/** The pages of one verified column chunk in memory. */
private[statistics] final class ChunkPages(
    obj: String,
    chunk: ColumnChunk,
    val leaf: ColumnDescriptor,
    bytes: Array[Byte],
    start: Int)
  extends PageReader {
  import ChunkPages._

  private val end = start + chunk.length.toInt
  private var at = start
  private var valuesLeft = chunk.values

  override def getTotalValueCount: Long = chunk.values

  /** The format has no dictionaries: data pages come first, or the object is refused when they are read. */
  override def readDictionaryPage(): DictionaryPage = null

  override def readPage(): DataPage =
    if (valuesLeft <= 0) null // parquet-mr's contract
    else {
      val rest = new ByteArrayInputStream(bytes, at, end - at)
      val header = ParquetFooter.inMemory(Util.readPageHeader(rest))
      at = end - rest.available
      val page = header.getType match {
        case PageType.DATA_PAGE => first(header)
        case PageType.DATA_PAGE_V2 => second(header)
        case other => throw new DamagedObjectException(obj, s"it has a page of type $other among its data")
      }
      valuesLeft -= page.getValueCount
      page
    }

  private def first(header: PageHeader): DataPage = {
    val data = header.getData_page_header
    val size = header.getUncompressed_page_size
    new DataPageV1(
      BytesInput.from(decompress(header.getCompressed_page_size, size)),
      data.getNum_values,
      size,
      statistics,
      ParquetEncoding.RLE,
      encoding(data.getDefinition_level_encoding),
      encoding(data.getEncoding))
  }

  private def second(header: PageHeader): DataPage = {
    val data = header.getData_page_header_v2
    val repetition = take(data.getRepetition_levels_byte_length)
    val definition = take(data.getDefinition_levels_byte_length)
    val levels = repetition.length + definition.length
    val length = header.getCompressed_page_size - levels
    val plain = if (data.isIs_compressed) decompress(length, header.getUncompressed_page_size - levels)
    else take(length)
    DataPageV2.uncompressed(
      data.getNum_values,
      0,
      data.getNum_values,
      BytesInput.from(repetition),
      BytesInput.from(definition),
      encoding(data.getEncoding),
      BytesInput.from(plain),
      statistics)
  }

  private def take(length: Int): Array[Byte] = {
    val from = skip(length)
    java.util.Arrays.copyOfRange(bytes, from, from + length)
  }

  /** Moves behind the next bytes, and returns their start. */
  private def skip(length: Int): Int = {
    if (length < 0 || length > end - at)
      throw new DamagedObjectException(obj, "a page lies outside of its column")
    at += length
    at - length
  }

  private def decompress(length: Int, size: Int): Array[Byte] = {
    val from = skip(length)
    if (size < 0 || size > chunk.decoded)
      throw new DamagedObjectException(obj, s"it has a page of $size bytes")
    chunk.codec match {
      case CompressionCodec.UNCOMPRESSED => java.util.Arrays.copyOfRange(bytes, from, from + length)
      case CompressionCodec.ZSTD =>
        val plain = new Array[Byte](size)
        val written = Zstd.decompressByteArray(plain, 0, size, bytes, from, length)
        if (written != size) throw new DamagedObjectException(obj, "a page does not decompress")
        plain
      case other => throw new DamagedObjectException(obj, s"its compression $other is not the format's")
    }
  }
}

private object ChunkPages {
  private val statistics: Statistics[_] =
    Statistics.createStats(Types.optional(PrimitiveTypeName.INT32).named("none"))
  private val converter = new ParquetMetadataConverter()

  private def encoding(stored: StoredEncoding): ParquetEncoding = converter.getEncoding(stored)
}
