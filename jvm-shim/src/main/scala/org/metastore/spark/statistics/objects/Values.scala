package org.metastore.spark.statistics.objects

import java.nio.ByteBuffer
import java.util.Arrays

import scala.reflect.ClassTag

import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter
import org.apache.parquet.io.api.Binary

import org.apache.spark.sql.types.{DataType, DecimalType, DoubleType, FloatType}

/**
 * Spark's order of doubles as integers: `key(a) < key(b)` exactly if `a < b` in Spark. NaN is the largest and
 * equal to itself, -0.0 equals 0.0.
 */
object DoubleOrder {

  /** Key of NaN, above every other. */
  val NaN: Long = key(Double.NaN)

  /** Key of both zeros. */
  val Zero: Long = key(0.0)

  /** Whether a value is a double or float of either zero. */
  def isZero(value: Any): Boolean = value match {
    case number: Double => number == 0
    case number: Float => number == 0
    case _ => false
  }

  def key(value: Double): Long = {
    val bits = java.lang.Double.doubleToLongBits(value + 0.0) // -0.0 + 0.0 is 0.0
    bits ^ ((bits >> 63) & Long.MaxValue)
  }

  /** The double of a key. */
  def value(key: Long): Double = java.lang.Double.longBitsToDouble(key ^ ((key >> 63) & Long.MaxValue))
}

/** Arrays of one value. Scala's own `Array.fill` makes an object of every element. */
private[statistics] object Fill {
  def longs(length: Int, value: Long): Array[Long] = {
    val out = new Array[Long](length)
    java.util.Arrays.fill(out, value)
    out
  }

  def doubles(length: Int, value: Double): Array[Double] = {
    val out = new Array[Double](length)
    java.util.Arrays.fill(out, value)
    out
  }
}

/** Elements of an array, by their indexes. Without boxing. */
private[statistics] object Gather {
  def apply[@specialized(Long, Int, Byte, Boolean) T: ClassTag](
      values: Array[T],
      indexes: Array[Int]): Array[T] = {
    val out = new Array[T](indexes.length)
    var i = 0
    while (i < out.length) {
      out(i) = values(indexes(i))
      i += 1
    }
    out
  }
}

/**
 * Values of a column in the order of bounds: integers, doubles as `DoubleOrder.key`, or bytes, long decimals
 * as `DecimalBytes`.
 */
sealed trait Values {
  def length: Int

  /** Bytes in memory. */
  def weight: Long

  /** Compares value `i` with value `j` of other values, which are of the same kind. */
  def compare(i: Int, other: Values, j: Int): Int

  /** The index of value `i` in sorted values of the same kind, as `Arrays.binarySearch` returns it. */
  def search(sorted: Values, i: Int): Int

  /** The values at some indexes. */
  def at(indexes: Array[Int]): Values

  /** Value `i` in a form that is equal for equal values. */
  def key(i: Int): Any

  /** Whether value `i` is in sorted values. */
  final def isIn(sorted: Values, i: Int): Boolean = search(sorted, i) >= 0

  /** The indexes of the values that are in sorted values. */
  final def placesIn(sorted: Values): Array[Int] = {
    val indexes = Array.newBuilder[Int]
    var i = 0
    while (i < length) {
      if (isIn(sorted, i)) indexes += i
      i += 1
    }
    indexes.result()
  }

  /** Whether all values are in sorted values. */
  final def areIn(sorted: Values): Boolean = (0 until length).forall(isIn(sorted, _))

  /** Whether no value is in other values; both are sorted. The fewer values are searched in the many. */
  final def areOutOf(other: Values): Boolean =
    if (length <= other.length) !(0 until length).exists(isIn(other, _)) else other.areOutOf(this)
}

object Values {

  /**
   * More than these are compared with bounds alone. Their look-up in a thousand files takes about a second.
   */
  val MostLookedUp = 250000

  val none: Values = Longs(Array.empty)

  final case class Longs(array: Array[Long]) extends Values {
    override def length: Int = array.length
    override def weight: Long = 24 + array.length * 8L

    override def compare(i: Int, other: Values, j: Int): Int = other match {
      case Longs(that) => java.lang.Long.compare(array(i), that(j))
      case _ => otherKind
    }

    override def search(sorted: Values, i: Int): Int = sorted match {
      case Longs(those) => Arrays.binarySearch(those, array(i))
      case _ => otherKind
    }

    override def at(indexes: Array[Int]): Values = Longs(Gather(array, indexes))
    override def key(i: Int): Any = array(i)
  }

  final case class Bytes(array: Array[Array[Byte]]) extends Values {
    override def length: Int = array.length
    override def weight: Long = 24 + array.iterator.map(24L + _.length).sum

    override def compare(i: Int, other: Values, j: Int): Int = other match {
      case Bytes(that) => UnsignedOrder.compare(array(i), that(j))
      case _ => otherKind
    }

    override def search(sorted: Values, i: Int): Int = sorted match {
      case Bytes(those) => Arrays.binarySearch(those, array(i), UnsignedOrder.comparator)
      case _ => otherKind
    }

    override def at(indexes: Array[Int]): Values = Bytes(indexes.map(array(_)))
    override def key(i: Int): Any = ByteBuffer.wrap(array(i))
  }

  private def otherKind: Nothing = throw new IllegalArgumentException("values of two kinds")
}

/** Hashes by docs/format.md ("sketches"): XXH64 of the stored form of a value, not of its ordered form. */
private[statistics] final class ValueHash(dataType: DataType) {
  private val isDouble = dataType == DoubleType || dataType == FloatType
  private val isDecimal = dataType.isInstanceOf[DecimalType]
  // not for several threads
  private val hasher = new BlockSplitBloomFilter(BlockSplitBloomFilter.LOWER_BOUND_BYTES)

  def hash(values: Values): Array[Long] = values match {
    case Values.Longs(array) => array.map(value => hasher.hash(if (isDouble) bitsOf(value) else value))
    case Values.Bytes(array) => array.map(hashBytes)
  }

  /** The hash of bytes in the order of bounds. */
  def hashBytes(value: Array[Byte]): Long =
    hasher.hash(Binary.fromConstantByteArray(if (isDecimal) DecimalBytes.ordered(value) else value))

  private def bitsOf(key: Long): Long = java.lang.Double.doubleToLongBits(DoubleOrder.value(key))
}

/** Order of strings and binary values: unsigned bytes, a prefix before what it begins. */
object UnsignedOrder {
  def compare(a: Array[Byte], b: Array[Byte]): Int = java.util.Arrays.compareUnsigned(a, b)

  val comparator: java.util.Comparator[Array[Byte]] = (a, b) => compare(a, b)

  /** The least byte string above all that begin with a prefix; None if all of its bytes are 255. */
  def afterPrefix(prefix: Array[Byte]): Option[Array[Byte]] = {
    val last = prefix.lastIndexWhere(_ != -1)
    if (last < 0) None
    else {
      val next = Arrays.copyOf(prefix, last + 1)
      next(last) = (next(last) + 1).toByte
      Some(next)
    }
  }

  /**
   * Eight bytes from `from` on as a signed integer. Two different integers have the order of the bytes from
   * there on.
   */
  def head(bytes: Array[Byte], from: Int): Long = {
    var head = 0L
    var i = from
    while (i < from + 8) {
      head = (head << 8) | (if (i < bytes.length) bytes(i) & 0xffL else 0L)
      i += 1
    }
    head ^ Long.MinValue
  }
}

/**
 * Decimals of more than 18 digits: 16 bytes big-endian two's complement, here with the sign bit flipped for
 * unsigned order.
 */
object DecimalBytes {
  private val Length = 16

  /** Flips the sign bit; null stays null, another length is unknown. */
  def ordered(bytes: Array[Byte]): Array[Byte] =
    if (bytes == null || bytes.length != Length) null
    else {
      val flipped = bytes.clone()
      flipped(0) = (flipped(0) ^ 0x80).toByte
      flipped
    }

  /** The ordered bytes of an unscaled value. */
  def fromUnscaled(unscaled: java.math.BigInteger): Array[Byte] = {
    val bytes = unscaled.toByteArray
    val out = Array.fill[Byte](Length)(if (unscaled.signum < 0) -1 else 0)
    System.arraycopy(bytes, 0, out, Length - bytes.length, bytes.length)
    ordered(out)
  }

  /** The unscaled value of ordered bytes. */
  def unscaled(bytes: Array[Byte]): java.math.BigInteger = new java.math.BigInteger(ordered(bytes))
}
