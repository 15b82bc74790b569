package org.metastore.spark.statistics.objects

import java.nio.{ByteBuffer, ByteOrder}
import java.util.concurrent.locks.ReentrantLock

import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.column.{ColumnDescriptor, Encoding => ParquetEncoding}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2, DictionaryPage, PageReader}

import org.metastore.spark.reason.DamagedObjectException

/** Pages that parquet-mr may decode. */
private[statistics] final class LimitedPages(pages: ChunkPages, descriptor: ColumnDescriptor) extends PageReader {
  override def getTotalValueCount: Long = pages.getTotalValueCount

  override def readDictionaryPage(): DictionaryPage = pages.readDictionaryPage()

  override def readPage(): DataPage = {
    val page = pages.readPage()
    if (page != null) new PageLimits(page.getValueCount, descriptor, pages.memory).check(page) // null: parquet-mr's contract
    page
  }
}

private final class PageLimits(count: Int, descriptor: ColumnDescriptor, memory: RowGroupMemory) {
  import PageLimits._

  def check(page: DataPage): Unit = page match {
    case v1: DataPageV1 =>
      val bytes = whole(v1.getBytes)
      Seq(descriptor.getMaxRepetitionLevel, descriptor.getMaxDefinitionLevel).filter(_ > 0).foreach(levels(sized(bytes), _))
      values(v1.getValueEncoding, bytes)
    case v2: DataPageV2 =>
      levels(whole(v2.getRepetitionLevels), descriptor.getMaxRepetitionLevel)
      levels(whole(v2.getDefinitionLevels), descriptor.getMaxDefinitionLevel)
      values(v2.getDataEncoding, whole(v2.getData))
    case other => refuse(s"a page of kind ${other.getClass.getName}")
  }

  private def levels(bytes: ByteBuffer, most: Int): Unit =
    LevelRuns.check(bytes, Integer.SIZE - Integer.numberOfLeadingZeros(most), count)

  private def values(encoding: ParquetEncoding, bytes: ByteBuffer): Unit = if (bytes.hasRemaining) encoding match {
    case ParquetEncoding.PLAIN => memory.take(bytes.remaining)
    case ParquetEncoding.RLE => LevelRuns.check(sized(bytes), 1, count)
    case ParquetEncoding.DELTA_BINARY_PACKED =>
      integers(bytes)
      memory.take(count * 8L)
    case ParquetEncoding.DELTA_LENGTH_BYTE_ARRAY => memory.take(sum(bytes))
    case ParquetEncoding.DELTA_BYTE_ARRAY => memory.take(sum(bytes) + sum(bytes))
    case other => refuse(s"the encoding $other")
  }

  /** Reads lengths, moves behind them and adds them up. */
  private def sum(bytes: ByteBuffer): Long = {
    val length = integers(bytes)
    memory.take(length * 8L)
    val lengths = new Array[Long](length)
    val start = bytes.arrayOffset + bytes.position()
    val packed = new PackedIntegers(bytes.array, start, start + bytes.remaining)
    packed.read(length, lengths, 0)
    bytes.position(packed.position - bytes.arrayOffset)
    if (lengths.exists(_ < 0)) refuse("a text of negative length")
    lengths.foldLeft(0L)((sum, length) => Math.addExact(sum, length))
  }

  /** How many integers are packed here; nothing moves. */
  private def integers(bytes: ByteBuffer): Int = {
    val head = bytes.duplicate()
    val (block, miniBlocks, length) = (LevelRuns.varint(head), LevelRuns.varint(head), LevelRuns.varint(head))
    val sound = block > 0 && block <= MaxBlock && miniBlocks > 0 && block % (miniBlocks * 32) == 0 && length <= count
    if (!sound) refuse(s"$length integers in blocks of $block for $count values")
    length.toInt
  }

  private def sized(bytes: ByteBuffer): ByteBuffer = {
    val length = bytes.getInt()
    if (length < 0 || length > bytes.remaining) refuse(s"levels of $length bytes")
    val part = bytes.slice()
    part.limit(length)
    bytes.position(bytes.position() + length)
    part
  }

  private def whole(bytes: BytesInput): ByteBuffer =
    bytes.toInputStream.slice(Math.toIntExact(bytes.size)).order(ByteOrder.LITTLE_ENDIAN)

  private def refuse(what: String): Nothing = throw new IllegalArgumentException(s"it has $what")
}

private object PageLimits {
  private val MaxBlock = 1 << 16
}

/** Runs of levels and of truth values (RLE). parquet-mr allocates a packed run at once, as long as it says to be. */
private[statistics] object LevelRuns {
  private val MaxShift = 28
  private val Packed = 8 // values are packed by eight

  /** Moves behind runs that may be decoded. */
  def check(bytes: ByteBuffer, width: Int, count: Int): Unit =
    while (bytes.hasRemaining && width > 0) {
      val header = varint(bytes)
      val values = if ((header & 1) == 1) (header >>> 1) * Packed else header >>> 1
      val length = if ((header & 1) == 1) (header >>> 1) * width else (width + 7L) / 8
      if ((header & 1) == 1 && values >= count.toLong + Packed) refuse(s"a run of $values values where there are $count")
      bytes.position(bytes.position() + math.min(length, bytes.remaining.toLong).toInt) // the last run may be cut
    }

  /** An unsigned number of at most 32 bits; moves behind it. */
  def varint(bytes: ByteBuffer): Long = {
    var value = 0L
    var shift = 0
    var next = 0x80
    while ((next & 0x80) != 0) {
      if (shift > MaxShift) refuse("a length of more than 32 bits")
      next = bytes.get()
      value |= (next & 0x7fL) << shift
      shift += 7
    }
    value
  }

  private def refuse(what: String): Nothing = throw new IllegalArgumentException(s"it has $what")
}

/** What reading one row group may take of the driver's memory. */
private[statistics] final class RowGroupMemory private (obj: String) {
  import RowGroupMemory._

  private var used = 0L
  private var isAlone = false

  /** Counts bytes that are going to be allocated, or refuses them. */
  def take(bytes: Long): Unit = {
    if (bytes < 0 || bytes > Most - used)
      throw new DamagedObjectException(obj, s"reading it takes more than ${Most >> 20} MB of the driver's memory")
    used += bytes
    if (used > Small && !isAlone) {
      large.lockInterruptibly()
      isAlone = true
    }
  }

  private def free(): Unit = if (isAlone) large.unlock()
}

private[statistics] object RowGroupMemory {
  private val Most = math.min(1L << 30, Runtime.getRuntime.maxMemory / 4)
  private val Small = Most / 4 // as much may be used by every thread at a time, more by one of them
  private val large = new ReentrantLock()

  /** Lends memory for reading a row group; a thread reads one at a time. */
  def lend[T](obj: String)(read: RowGroupMemory => T): T = {
    val memory = new RowGroupMemory(obj)
    try read(memory)
    finally memory.free()
  }
}
