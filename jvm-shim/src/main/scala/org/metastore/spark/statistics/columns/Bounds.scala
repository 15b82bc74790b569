package org.metastore.spark.statistics.columns

import java.util.Arrays

import org.metastore.spark.statistics.objects.{DoubleOrder, Gather, UnsignedOrder, Values}

/**
 * Bounds of non-null values, one pair a file, in one of two orders that agree with Spark's ordering of the
 * type: `LongBounds` by signed 64-bit integers, `BytesBounds` by unsigned bytes.
 */
sealed trait Bounds extends CacheWeight {
  def hasLo(file: Int): Boolean
  def hasHi(file: Int): Boolean

  /** Whether the bound is known to be a value of the file. */
  def loExact(file: Int): Boolean
  def hiExact(file: Int): Boolean

  /** Lower and upper bounds by file. The value of an unknown bound has no meaning. */
  def los: Values
  def his: Values

  /** The bounds of some of the files, in their order. */
  def at(files: Array[Int]): Bounds

  /** The lower bounds, or the upper ones. */
  final def ends(low: Boolean): Values = if (low) los else his

  /** Whether the lower bound is known, or the upper one. */
  final def has(file: Int, low: Boolean): Boolean = if (low) hasLo(file) else hasHi(file)

  /** Whether the lower bound is known to be a value of the file, or the upper one. */
  final def isExact(file: Int, low: Boolean): Boolean = if (low) loExact(file) else hiExact(file)

  final def hasBoth(file: Int): Boolean = hasLo(file) && hasHi(file)

  /** Whether both bounds are values of the file. */
  final def areExact(file: Int): Boolean = loExact(file) && hiExact(file)
}

/** A type without bounds: only counts are known. */
object NoBounds extends Bounds {
  override def hasLo(file: Int): Boolean = false
  override def hasHi(file: Int): Boolean = false
  override def loExact(file: Int): Boolean = false
  override def hiExact(file: Int): Boolean = false
  override val los: Values = Values.Longs(Array.emptyLongArray)
  override val his: Values = los
  override def at(files: Array[Int]): Bounds = this
  override def weight: Long = 0
}

/**
 * Bounds as integers: integral types, dates, timestamps and decimals up to 18 digits as they are, doubles as
 * `DoubleOrder.key`. An unknown lower bound is `Long.MinValue`, an unknown upper bound `Long.MaxValue`, not
 * exact.
 *
 * @param numbers of doubles, upper bounds of the values that are no NaN; null where it is `hi`
 */
final class LongBounds(
    val lo: Array[Long],
    val hi: Array[Long],
    val flags: Array[Byte],
    numbers: Array[Long] = null)
  extends Bounds {

  /** By file: no value up to `limit` is above it. NaN does not count where the limit is below NaN. */
  def hiUpTo(limit: Long): Array[Long] = if (numbers == null || limit >= DoubleOrder.NaN) hi else numbers

  override def hasLo(file: Int): Boolean = (flags(file) & Bounds.HasLo) != 0
  override def hasHi(file: Int): Boolean = (flags(file) & Bounds.HasHi) != 0
  override def loExact(file: Int): Boolean = (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = (flags(file) & Bounds.HiExact) != 0
  override val los: Values = Values.Longs(lo)
  override val his: Values = Values.Longs(hi)

  override def at(files: Array[Int]): Bounds = new LongBounds(
    Gather(lo, files),
    Gather(hi, files),
    Gather(flags, files),
    if (numbers == null) null else Gather(numbers, files))

  override def weight: Long = lo.length * (if (numbers == null) 17L else 25L)
}

/**
 * Bounds as bytes: strings and binary as they are, decimals of more than 18 digits as 16 bytes big-endian
 * with the sign bit flipped. An unknown bound is null.
 */
final class BytesBounds private (
    val lo: Array[Array[Byte]],
    val hi: Array[Array[Byte]],
    val flags: Array[Byte],
    private var madeHeads: Option[BoundHeads])
  extends Bounds {

  def this(lo: Array[Array[Byte]], hi: Array[Array[Byte]], flags: Array[Byte]) = this(lo, hi, flags, None)

  override def hasLo(file: Int): Boolean = lo(file) != null
  override def hasHi(file: Int): Boolean = hi(file) != null
  override def loExact(file: Int): Boolean = hasLo(file) && (flags(file) & Bounds.LoExact) != 0
  override def hiExact(file: Int): Boolean = hasHi(file) && (flags(file) & Bounds.HiExact) != 0
  override val los: Values = Values.Bytes(lo)
  override val his: Values = Values.Bytes(hi)

  /** Integers that suffice for most comparisons. */
  def heads: BoundHeads = {
    // threads that make them at once make equal ones
    if (madeHeads.isEmpty) madeHeads = Some(BoundHeads.fromBounds(lo, hi))
    madeHeads.get
  }

  override def at(files: Array[Int]): Bounds = new BytesBounds(
    files.map(lo(_)),
    files.map(hi(_)),
    Gather(flags, files),
    madeHeads.map(_.at(files)))

  /** The weight, estimated by the lengths of some bounds. */
  override def weight: Long = {
    val sample = Array.range(0, lo.length, math.max(1, lo.length / BytesBounds.Measured))
    def mean(values: Array[Array[Byte]]): Long =
      if (sample.isEmpty) 0
      else sample.iterator.map(i => if (values(i) == null) 0L else 24L + values(i).length).sum / sample.length
    lo.length * (33L + mean(lo) + mean(hi))
  }
}

private[statistics] object BytesBounds {
  private val Measured = 64
}

/**
 * An integer for each bound that is a byte string: if the integers of a value and a bound differ, they have
 * its order.
 */
final class BoundHeads private (shared: Array[Byte], val lo: Array[Long], val hi: Array[Long]) {

  /** The integer of a value. */
  def head(value: Array[Byte]): Long = {
    val order =
      Arrays.compareUnsigned(value, 0, math.min(value.length, shared.length), shared, 0, shared.length)
    if (order < 0) Long.MinValue
    else if (order > 0) Long.MaxValue else UnsignedOrder.head(value, shared.length)
  }

  private[statistics] def at(files: Array[Int]): BoundHeads =
    new BoundHeads(shared, Gather(lo, files), Gather(hi, files))
}

private[statistics] object BoundHeads {
  def fromBounds(lo: Array[Array[Byte]], hi: Array[Array[Byte]]): BoundHeads = {
    val shared = sharedBy(lo.iterator ++ hi.iterator)
    new BoundHeads(shared, heads(lo, shared.length, Long.MinValue), heads(hi, shared.length, Long.MaxValue))
  }

  private def sharedBy(bounds: Iterator[Array[Byte]]): Array[Byte] = {
    val stored = bounds.filter(_ != null)
    if (!stored.hasNext) Array.emptyByteArray
    else {
      val first = stored.next()
      var length = first.length
      for (bound <- stored) {
        val differs = Arrays.mismatch(first, 0, length, bound, 0, math.min(length, bound.length))
        if (differs >= 0) length = differs
      }
      first.take(length)
    }
  }

  private def heads(values: Array[Array[Byte]], from: Int, unknown: Long): Array[Long] = {
    val heads = new Array[Long](values.length)
    var i = 0
    while (i < heads.length) {
      heads(i) = if (values(i) == null) unknown else UnsignedOrder.head(values(i), from)
      i += 1
    }
    heads
  }
}

object Bounds {
  val HasLo: Byte = 1
  val HasHi: Byte = 2
  val LoExact: Byte = 4
  val HiExact: Byte = 8
}
