package org.metastore.spark.store

import java.nio.ByteBuffer

/** Runs of levels and of truth values (RLE). parquet-mr allocates a packed run at once, as long as it says to be. */
private[store] object LevelRuns {
  private val MaxShift = 28
  private val Packed = 8 // values are packed by eight

  /**
   * Moves behind runs that may be decoded.
   *
   * @param width bits of a value
   * @param count how many values there are
   * @throws IllegalArgumentException if one says to be longer than that
   */
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
