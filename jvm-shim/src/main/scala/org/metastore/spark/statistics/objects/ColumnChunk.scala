package org.metastore.spark.statistics.objects

import com.github.luben.zstd.Zstd
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2, DictionaryPage, PageReader}
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.format.{Encoding => StoredEncoding}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.schema.Types
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

import org.metastore.spark.reason.DamagedObjectException

/** The pages of one verified column chunk that stands in memory. */
private[statistics] final class ChunkPages(
    obj: String, chunk: ColumnChunk, val leaf: FooterLeaf, bytes: Array[Byte], start: Int, val memory: RowGroupMemory)
  extends PageReader {
  import ChunkPages._

  private val end = start + chunk.length.toInt
  private var at = start
  private var valuesLeft = chunk.values
  private var borrowed = 0L

  override def getTotalValueCount: Long = chunk.values

  /** The format has no dictionaries: data pages come first, or the object is refused when they are read. */
  override def readDictionaryPage(): DictionaryPage = null

  override def readPage(): DataPage =
    if (valuesLeft <= 0) null // parquet-mr's contract
    else {
      val thrift = new CompactThrift(bytes, at, end)
      val head = PageHead.read(thrift)
      at = thrift.position
      if (head.values > valuesLeft) throw new DamagedObjectException(obj, "a page has more values than its column")
      valuesLeft -= head.values
      if (head.isSecond) second(head) else first(head)
    }

  /** Asks for memory that one page needs; the next page uses it again. */
  def borrow(size: Long): Unit = if (size > borrowed) {
    memory.take(size - borrowed)
    borrowed = size
  }

  private def first(head: PageHead): DataPage = new DataPageV1(
    BytesInput.from(decompress(head.compressed, head.size)), head.values, head.size, statistics, ParquetEncoding.RLE, head.levels,
    head.encoding)

  private def second(head: PageHead): DataPage = {
    val repetition = take(head.repeats)
    val definition = take(head.defines)
    val levels = repetition.length + definition.length
    val length = head.compressed - levels
    val plain = if (head.isPacked) decompress(length, head.size - levels) else take(length)
    DataPageV2.uncompressed(
      head.values, 0, head.values, BytesInput.from(repetition), BytesInput.from(definition), head.encoding, BytesInput.from(plain),
      statistics)
  }

  private def take(length: Int): Array[Byte] = {
    val from = skip(length)
    java.util.Arrays.copyOfRange(bytes, from, from + length)
  }

  /** Moves behind the next bytes, and says where they begin. */
  private def skip(length: Int): Int = {
    if (length < 0 || length > end - at) throw new DamagedObjectException(obj, "a page lies outside of its column")
    at += length
    at - length
  }

  private def decompress(length: Int, size: Int): Array[Byte] = {
    val from = skip(length)
    if (size < 0 || size > MaxPage) throw new DamagedObjectException(obj, s"it has a page of $size bytes")
    borrow(math.max(size, length))
    chunk.codec match {
      case CompressionCodecName.UNCOMPRESSED => java.util.Arrays.copyOfRange(bytes, from, from + length)
      case CompressionCodecName.ZSTD =>
        val plain = new Array[Byte](size)
        val written = Zstd.decompressByteArray(plain, 0, size, bytes, from, length)
        if (written != size) throw new DamagedObjectException(obj, "a page does not decompress")
        plain
      case other => throw new DamagedObjectException(obj, s"its compression $other is not the format's")
    }
  }
}

private object ChunkPages {
  private val MaxPage = 256 << 20
  private val statistics: Statistics[_] = Statistics.createStats(Types.optional(PrimitiveTypeName.INT32).named("none"))
}

/** What the header of a data page says. */
private[statistics] final case class PageHead(
    isSecond: Boolean, size: Int, compressed: Int, values: Int, encoding: ParquetEncoding, levels: ParquetEncoding, repeats: Int,
    defines: Int, isPacked: Boolean)

private[statistics] object PageHead {
  private val DataPage = 0
  private val DataPageV2 = 3
  private val True = 1
  private val converter = new ParquetMetadataConverter()

  /** Reads a header. Other pages than data pages are refused: the format has no dictionaries. */
  def read(thrift: CompactThrift): PageHead = {
    var (kind, size, compressed) = (-1, -1, -1)
    var data = Option.empty[DataHead]
    thrift.struct {
      case (1, _) => kind = thrift.int()
      case (2, _) => size = thrift.int()
      case (3, _) => compressed = thrift.int()
      case (5, _) => data = Some(first(thrift))
      case (8, _) => data = Some(second(thrift))
      case (_, other) => thrift.skip(other)
    }
    val head = data.filter(_.kind == kind).getOrElse(throw new IllegalArgumentException(s"it has a page of type $kind among its data"))
    if (size < 0 || compressed < 0 || head.values <= 0)
      throw new IllegalArgumentException(s"it has a page of ${head.values} values in $compressed bytes, $size when decompressed")
    PageHead(
      kind == DataPageV2, size, compressed, head.values, encoding(head.encoding), encoding(head.levels), head.repeats, head.defines,
      head.isPacked)
  }

  private final case class DataHead(
      kind: Int, values: Int, encoding: Int, levels: Int, repeats: Int = 0, defines: Int = 0, isPacked: Boolean = true)

  private def first(thrift: CompactThrift): DataHead = {
    var (values, encoding, levels) = (-1, -1, -1)
    thrift.struct {
      case (1, _) => values = thrift.int()
      case (2, _) => encoding = thrift.int()
      case (3, _) => levels = thrift.int()
      case (_, other) => thrift.skip(other)
    }
    DataHead(DataPage, values, encoding, levels)
  }

  private def second(thrift: CompactThrift): DataHead = {
    var (values, encoding, repeats, defines, isPacked) = (-1, -1, 0, 0, true)
    thrift.struct {
      case (1, _) => values = thrift.int()
      case (4, _) => encoding = thrift.int()
      case (5, _) => defines = thrift.int()
      case (6, _) => repeats = thrift.int()
      case (7, truth) => isPacked = truth == True
      case (_, other) => thrift.skip(other)
    }
    DataHead(DataPageV2, values, encoding, StoredEncoding.RLE.getValue, repeats, defines, isPacked)
  }

  private def encoding(number: Int): ParquetEncoding =
    Option(StoredEncoding.findByValue(number)).map(converter.getEncoding(_))
      .getOrElse(throw new IllegalArgumentException(s"it has the encoding $number"))
}
