package org.metastore.spark.store

import java.nio.{ByteBuffer, ByteOrder => Endian}

/**
 * DELTA_BINARY_PACKED integers, straight from bytes into an array: parquet-mr's reader copies every value twice, and planning
 * decodes millions.
 *
 * @param at where the encoded integers begin; moves behind what was read
 */
private[store] final class PackedIntegers(bytes: Array[Byte], private var at: Int, end: Int) {
  import PackedIntegers._
  private val words = ByteBuffer.wrap(bytes).order(Endian.LITTLE_ENDIAN)

  /** Where the next byte stands that was not read. */
  def position: Int = at

  /**
   * Reads all of the integers, of which there must be `count`, into `out` from `first` on. Those of INT32 columns wrap around
   * at 32 bits: the caller narrows them.
   *
   * @throws IllegalArgumentException if the bytes are no such integers
   */
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

  private def unpack(width: Int, smallest: Long, before: Long, out: Array[Long], from: Int, until: Int): Long =
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

  /** Where a value may span more than eight bytes, or the array ends. */
  private def bitwise(width: Int, smallest: Long, before: Long, out: Array[Long], from: Int, until: Int): Long = {
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
private[store] object PackedBytes {

  private val ArrayBytes = 24L // of the object beside its elements

  /**
   * Reads `count` values into `out` from `first` on. Equal neighbours are one array: nobody writes into it.
   *
   * @param memory what the values may take: each may be nearly as long as all bytes
   */
  def read(
      bytes: Array[Byte], start: Int, end: Int, count: Int, out: Array[Array[Byte]], first: Int, memory: RowGroupMemory): Unit = {
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
        memory.take(ArrayBytes + shared + added)
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
