package org.metastore.spark.pruning

import java.util.Arrays

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.columns.{Bounds, BytesBounds, LongBounds}
import org.metastore.spark.statistics.objects.{DecimalBytes, DoubleOrder, Values, UnsignedOrder}

/** The values that a leaf accepts, in the order of the bounds. */
private[pruning] sealed trait ValueSet {

  /** No value between the file's bounds is in the set. */
  def disjoint(bounds: Bounds): Array[Boolean]

  /** Every value between the file's bounds is in the set. */
  def covers(bounds: Bounds): Array[Boolean]

  /** The values that are in another set of the same kind too. */
  def intersect(other: ValueSet): ValueSet

  /** The values, where they are single ones and few enough to be looked up. */
  def points: Option[Values] = None
}

private[pruning] object ValueSet {
  private def each(length: Int)(test: Int => Boolean): Array[Boolean] = {
    val out = new Array[Boolean](length)
    var i = 0
    while (i < length) {
      out(i) = test(i)
      i += 1
    }
    out
  }

  /** No value at all. */
  case object Nothing extends ValueSet {
    override def disjoint(bounds: Bounds): Array[Boolean] = each(lengthOf(bounds))(_ => true)
    override def covers(bounds: Bounds): Array[Boolean] = new Array[Boolean](lengthOf(bounds))
    override def intersect(other: ValueSet): ValueSet = this

    private def lengthOf(bounds: Bounds): Int = bounds match {
      case b: LongBounds => b.lo.length
      case b: BytesBounds => b.lo.length
      case _ => throw new IllegalArgumentException("there are no bounds")
    }
  }

  /** Integers from `lo` to `hi`, both included; the extremes mean no limit. */
  final case class LongRange(lo: Long, hi: Long) extends ValueSet {
    override def points: Option[Values] = if (lo == hi) Some(Values.Longs(Array(lo))) else None

    override def disjoint(bounds: Bounds): Array[Boolean] = bounds match {
      case b: LongBounds =>
        val (lows, highs) = (b.lo, b.hiUpTo(hi))
        val out = new Array[Boolean](lows.length)
        var i = 0
        while (i < out.length) {
          out(i) = lows(i) > hi | highs(i) < lo
          i += 1
        }
        out
      case _ => throw new IllegalArgumentException("bounds are not integers")
    }

    override def covers(bounds: Bounds): Array[Boolean] = bounds match {
      case b: LongBounds if lo == hi => each(b.lo.length)(i => b.lo(i) == lo && b.hi(i) == hi && exact(b, i))
      case b: LongBounds => each(b.lo.length)(i => b.lo(i) >= lo && b.hi(i) <= hi)
      case _ => throw new IllegalArgumentException("bounds are not integers")
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case that: LongRange =>
        val (least, most) = (math.max(lo, that.lo), math.min(hi, that.hi))
        if (least > most) Nothing else LongRange(least, most)
      case that: LongPoints => that.intersect(this)
      case Nothing => Nothing
      case _ => throw new IllegalArgumentException("sets of two kinds")
    }
  }

  /** Single integers, sorted. */
  final case class LongPoints(values: Array[Long]) extends ValueSet {
    override def points: Option[Values] = if (values.length <= Values.MostLookedUp) Some(Values.Longs(values)) else None

    override def disjoint(bounds: Bounds): Array[Boolean] = bounds match {
      case b: LongBounds =>
        val highs = b.hiUpTo(values.last)
        each(b.lo.length) { i =>
          val at = firstFrom(b.lo(i))
          at == values.length || values(at) > highs(i)
        }
      case _ => throw new IllegalArgumentException("bounds are not integers")
    }

    override def covers(bounds: Bounds): Array[Boolean] = bounds match {
      case b: LongBounds => each(b.lo.length) { i =>
        b.lo(i) == b.hi(i) && exact(b, i) && Arrays.binarySearch(values, b.lo(i)) >= 0
      }
      case _ => throw new IllegalArgumentException("bounds are not integers")
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case LongRange(lo, hi) => only(value => lo <= value && value <= hi)
      case LongPoints(others) => only(Arrays.binarySearch(others, _) >= 0)
      case Nothing => Nothing
      case _ => throw new IllegalArgumentException("sets of two kinds")
    }

    private def only(test: Long => Boolean): ValueSet = values.filter(test) match {
      case Array() => Nothing
      case Array(point) => LongRange(point, point)
      case left => LongPoints(left)
    }

    private def firstFrom(value: Long): Int = {
      val found = Arrays.binarySearch(values, value)
      if (found >= 0) found else -found - 1
    }
  }

  /** Byte strings from `lo`, included, to `hi`, included or not; null means no limit. */
  final case class BytesRange(lo: Array[Byte], hi: Array[Byte], hiIncluded: Boolean) extends ValueSet {
    private val isPoint = lo != null && hi != null && hiIncluded && Arrays.equals(lo, hi)

    override def points: Option[Values] = if (isPoint) Some(Values.Bytes(Array(lo))) else None

    override def disjoint(bounds: Bounds): Array[Boolean] = bounds match {
      case b: BytesBounds =>
        val heads = b.heads
        val (least, most) = (if (lo == null) Long.MinValue else heads.of(lo), if (hi == null) Long.MaxValue else heads.of(hi))
        val (lows, highs) = (heads.lo, heads.hi)
        val out = new Array[Boolean](lows.length)
        var i = 0
        while (i < out.length) {
          out(i) = lows(i) > most || highs(i) < least ||
            (lows(i) == most && above(b.lo(i))) || (highs(i) == least && below(b.hi(i)))
          i += 1
        }
        out
      case _ => throw new IllegalArgumentException("bounds are not bytes")
    }

    override def covers(bounds: Bounds): Array[Boolean] = bounds match {
      case b: BytesBounds => each(b.lo.length) { i =>
        (lo == null || b.lo(i) != null && UnsignedOrder.compare(b.lo(i), lo) >= 0) &&
          (hi == null || b.hi(i) != null && !above(b.hi(i))) && (!isPoint || exact(b, i))
      }
      case _ => throw new IllegalArgumentException("bounds are not bytes")
    }

    def contains(value: Array[Byte]): Boolean = !above(value) && !below(value)

    override def intersect(other: ValueSet): ValueSet = other match {
      case that: BytesRange =>
        val least = if (lo == null || that.lo != null && UnsignedOrder.compare(that.lo, lo) > 0) that.lo else lo
        val narrower = if (hi == null || that.hi != null && that.above(hi)) that else this
        val both = BytesRange(least, narrower.hi, narrower.hiIncluded)
        if (least != null && both.above(least)) Nothing else both
      case that: BytesPoints => that.intersect(this)
      case Nothing => Nothing
      case _ => throw new IllegalArgumentException("sets of two kinds")
    }

    private def above(value: Array[Byte]): Boolean = value != null && hi != null && {
      val order = UnsignedOrder.compare(value, hi)
      order > 0 || (order == 0 && !hiIncluded)
    }

    private def below(value: Array[Byte]): Boolean = value != null && lo != null && UnsignedOrder.compare(value, lo) < 0
  }

  /** Single byte strings, sorted. */
  final case class BytesPoints(values: Array[Array[Byte]]) extends ValueSet {
    override def points: Option[Values] = if (values.length <= Values.MostLookedUp) Some(Values.Bytes(values)) else None

    private val order: java.util.Comparator[Array[Byte]] = (a, b) => UnsignedOrder.compare(a, b)

    override def disjoint(bounds: Bounds): Array[Boolean] = bounds match {
      case b: BytesBounds => each(b.lo.length) { i =>
        val at = if (b.lo(i) == null) 0 else firstFrom(b.lo(i))
        at == values.length || (b.hi(i) != null && UnsignedOrder.compare(values(at), b.hi(i)) > 0)
      }
      case _ => throw new IllegalArgumentException("bounds are not bytes")
    }

    override def covers(bounds: Bounds): Array[Boolean] = bounds match {
      case b: BytesBounds => each(b.lo.length) { i =>
        b.lo(i) != null && b.hi(i) != null && exact(b, i) && Arrays.equals(b.lo(i), b.hi(i)) &&
          Arrays.binarySearch(values, b.lo(i), order) >= 0
      }
      case _ => throw new IllegalArgumentException("bounds are not bytes")
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case range: BytesRange => only(range.contains)
      case BytesPoints(others) => only(Arrays.binarySearch(others, _, order) >= 0)
      case Nothing => Nothing
      case _ => throw new IllegalArgumentException("sets of two kinds")
    }

    private def only(test: Array[Byte] => Boolean): ValueSet = values.filter(test) match {
      case Array() => Nothing
      case Array(point) => BytesRange(point, point, hiIncluded = true)
      case left => BytesPoints(left)
    }

    private def firstFrom(value: Array[Byte]): Int = {
      val found = Arrays.binarySearch(values, value, order)
      if (found >= 0) found else -found - 1
    }
  }

  /** Byte strings that begin with the prefix. */
  def ofPrefix(prefix: Array[Byte]): BytesRange = {
    val last = prefix.lastIndexWhere(_ != -1)
    val next = if (last < 0) null else prefix.take(last + 1)
    if (next != null) next(last) = (next(last) + 1).toByte
    BytesRange(prefix, next, hiIncluded = false)
  }

  private def exact(bounds: Bounds, file: Int): Boolean = bounds.loExact(file) && bounds.hiExact(file)
}

/** Takes values of literals to the order in which bounds are kept, and builds sets of them. */
private[pruning] object LiteralValues {

  /** A value in the order of bounds. */
  sealed trait Key
  final case class LongKey(value: Long) extends Key
  final case class BytesKey(value: Array[Byte]) extends Key

  /** The key of Catalyst's internal value; `None` where the type has no order here, or the value does not fit it. */
  def key(value: Any, dataType: DataType): Option[Key] = (value, dataType) match {
    case (b: Boolean, BooleanType) => Some(LongKey(if (b) 1 else 0))
    case (n: Number, ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType) =>
      Some(LongKey(n.longValue))
    case (n: Number, FloatType | DoubleType) => Some(LongKey(DoubleOrder.key(n.doubleValue)))
    case (d: Decimal, to: DecimalType) => decimal(d, to)
    case (s: UTF8String, StringType) => Some(BytesKey(s.getBytes))
    case (b: Array[Byte], BinaryType) => Some(BytesKey(b))
    case _ => None
  }

  private def decimal(value: Decimal, to: DecimalType): Option[Key] = {
    val exact = value.toJavaBigDecimal
    if (exact.stripTrailingZeros.scale > to.scale) None
    else {
      val unscaled = exact.setScale(to.scale).unscaledValue
      if (to.precision <= 18) if (unscaled.bitLength < 64) Some(LongKey(unscaled.longValue)) else None
      else if (unscaled.bitLength < 128) Some(BytesKey(DecimalBytes.of(unscaled)))
      else None
    }
  }

  /** The single value. */
  def point(key: Key): ValueSet = key match {
    case LongKey(value) => ValueSet.LongRange(value, value)
    case BytesKey(value) => ValueSet.BytesRange(value, value, hiIncluded = true)
  }

  /** The single values, of one kind; `None` where there is none. */
  def points(keys: Seq[Key]): Option[ValueSet] = keys match {
    case Seq() => None
    case Seq(only) => Some(point(only))
    case Seq(_: LongKey, _*) => Some(ValueSet.LongPoints(keys.collect { case LongKey(v) => v }.distinct.sorted.toArray))
    case _ =>
      val sorted = keys.collect { case BytesKey(v) => v }.sortWith((a, b) => UnsignedOrder.compare(a, b) < 0)
      Some(ValueSet.BytesPoints(sorted.toArray))
  }

  /** All values below the key; `None` where there cannot be any. */
  def below(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included => Some(ValueSet.LongRange(Long.MinValue, value))
    case LongKey(Long.MinValue) => None
    case LongKey(value) => Some(ValueSet.LongRange(Long.MinValue, value - 1))
    case BytesKey(value) => Some(ValueSet.BytesRange(null, value, included))
  }

  /** All values above the key; `None` where there cannot be any. The byte string that follows ends in a zero byte more. */
  def above(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included => Some(ValueSet.LongRange(value, Long.MaxValue))
    case LongKey(Long.MaxValue) => None
    case LongKey(value) => Some(ValueSet.LongRange(value + 1, Long.MaxValue))
    case BytesKey(value) => Some(ValueSet.BytesRange(if (included) value else value :+ 0.toByte, null, hiIncluded = false))
  }
}
