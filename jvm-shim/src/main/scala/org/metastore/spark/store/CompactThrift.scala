package org.metastore.spark.store

import java.nio.charset.StandardCharsets.UTF_8

/**
 * Reads Thrift's compact protocol from bytes, as far as Parquet footers and page headers need it. What is not asked for is passed over, not
 * made into objects: a planner reads a dozen footers of hundreds of column chunks for one query.
 *
 * Bytes that are no such structure raise an exception; nothing is allocated by a length that they claim.
 */
private[store] final class CompactThrift(bytes: Array[Byte], private var at: Int, end: Int) {
  import CompactThrift._

  /** Calls `field` with id and type of every field of a structure; it must read the value or pass over it. */
  def struct(field: (Int, Int) => Unit): Unit = {
    var id = 0
    var header = byte()
    while (header != Stop) {
      val delta = (header >> 4) & 0xf
      id = if (delta == 0) signed().toInt else id + delta
      field(id, header & 0xf)
      header = byte()
    }
  }

  /** Where the next byte stands that was not read. */
  def position: Int = at

  /** Calls `element` with the type, once for each element of a list, of which there may be `most`. */
  def list(most: Long)(element: Int => Unit): Unit = {
    val header = byte()
    val short = (header >> 4) & 0xf
    val size = if (short == LongList) unsigned() else short.toLong
    if (size < 0 || size > most || size > end - at) refuse() // every element takes a byte
    var i = 0L
    while (i < size) {
      element(header & 0xf)
      i += 1
    }
  }

  def int(): Int = signed().toInt

  def long(): Long = signed()

  def bytes(): Array[Byte] = {
    val from = skipBytes()
    java.util.Arrays.copyOfRange(bytes, from, at)
  }

  def text(): String = {
    val from = skipBytes()
    new String(bytes, from, at - from, UTF_8)
  }

  /** Passes over a value of that type. */
  def skip(kind: Int): Unit = skip(kind, inList = false, 0)

  private def skip(kind: Int, inList: Boolean, depth: Int): Unit = {
    if (depth > MaxDepth) refuse()
    kind match {
      case True | False => if (inList) byte()
      case ByteType => byte()
      case I16 | I32 | I64 => unsigned()
      case Double => advance(8)
      case Binary => skipBytes()
      case ListType | SetType => list(Long.MaxValue)(skip(_, inList = true, depth + 1))
      case Struct => struct((_, field) => skip(field, inList = false, depth + 1))
      case _ => refuse() // footers have no maps
    }
  }

  private def skipBytes(): Int = {
    val length = unsigned()
    if (length < 0 || length > end - at) refuse()
    advance(length.toInt)
  }

  /** Moves on, and says where it was. */
  private def advance(length: Int): Int = {
    if (length > end - at) refuse()
    at += length
    at - length
  }

  private def byte(): Int = bytes(advance(1))

  private def unsigned(): Long = {
    var value = 0L
    var shift = 0
    var next = 0x80
    while ((next & 0x80) != 0) {
      if (shift > 63) refuse()
      next = byte()
      value |= (next & 0x7fL) << shift
      shift += 7
    }
    value
  }

  private def signed(): Long = {
    val value = unsigned()
    (value >>> 1) ^ -(value & 1)
  }

  private def refuse(): Nothing = throw new IllegalArgumentException("its footer or a page header is not as encoded")
}

private object CompactThrift {
  private val Stop = 0
  private val True = 1
  private val False = 2
  private val ByteType = 3
  private val I16 = 4
  private val I32 = 5
  private val I64 = 6
  private val Double = 7
  private val Binary = 8
  private val ListType = 9
  private val SetType = 10
  private val Struct = 12
  private val LongList = 15
  private val MaxDepth = 16
}
