package org.metastore.spark.store

import com.github.luben.zstd.Zstd
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2, DictionaryPage, PageReader}
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.Types

/**
 * The pages of one verified column chunk that stands in memory.
 *
 * @param memory what reading its row group may take
 */
private[store] final class ChunkPages(
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
