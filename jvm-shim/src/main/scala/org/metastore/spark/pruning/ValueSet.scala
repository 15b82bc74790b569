package org.metastore.spark.pruning

import java.util.BitSet

import org.metastore.spark.statistics.columns.{Bounds, BytesBounds, LongBounds}
import org.metastore.spark.statistics.objects.{UnsignedOrder, Values}

/** The values that a leaf accepts, in the order of the bounds. */
private[pruning] sealed trait ValueSet {

  /** The files between whose bounds no value is in the set. */
  def disjoint(bounds: Bounds): BitSet

  /** The files between whose bounds every value is in the set. */
  def covers(bounds: Bounds): BitSet

  /** The values that are in another set of the same kind too. */
  def intersect(other: ValueSet): ValueSet

  /** The values, where they are single ones and few enough to be looked up. */
  def points: Option[Values] = None
}

private[pruning] object ValueSet {

  /** No value at all. */
  case object NoValue extends ValueSet {
    override def disjoint(bounds: Bounds): BitSet = FileSets.all(bounds.los.length)
    override def covers(bounds: Bounds): BitSet = new BitSet
    override def intersect(other: ValueSet): ValueSet = this
  }

  /** All values between two. */
  sealed trait Range extends ValueSet {
    def contains(values: Values, i: Int): Boolean
  }

  /** Integers from `lo` to `hi`, both included; the extremes mean no limit. */
  final case class LongRange(lo: Long, hi: Long) extends Range {
    private def isPoint: Boolean = lo == hi

    override def points: Option[Values] =
      if (isPoint) Some(Values.Longs(Array(lo))) else None

    override def disjoint(bounds: Bounds): BitSet = {
      val lows = longs(bounds).lo
      val highs = longs(bounds).hiUpTo(hi)
      FileSets.where(lows.length)(i => lows(i) > hi || highs(i) < lo)
    }

    override def covers(bounds: Bounds): BitSet = {
      val b = longs(bounds)
      FileSets.where(b.lo.length) { i =>
        b.lo(i) >= lo && b.hi(i) <= hi && (!isPoint || exact(b, i))
      }
    }

    override def contains(values: Values, i: Int): Boolean = values match {
      case Values.Longs(array) =>
        lo <= array(i) && array(i) <= hi
      case _ => otherKind
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case that: LongRange =>
        val least = math.max(lo, that.lo)
        val most = math.min(hi, that.hi)
        if (least > most) NoValue else LongRange(least, most)
      case that =>
        that.intersect(this)
    }

    private def longs(bounds: Bounds): LongBounds = bounds match {
      case integers: LongBounds => integers
      case _ => otherKind
    }
  }

  /** Byte strings from `lo`, included, to `hi`, included or not; null means no limit. */
  final case class BytesRange(lo: Array[Byte], hi: Array[Byte], hiIncluded: Boolean) extends Range {
    private val isPoint = hi != null && UnsignedOrder.compare(lo, hi) == 0 // null is less than all

    override def points: Option[Values] =
      if (isPoint) Some(Values.Bytes(Array(lo))) else None

    override def disjoint(bounds: Bounds): BitSet = {
      val b = bytes(bounds)
      val heads = b.heads
      val least = if (lo == null) Long.MinValue else heads.of(lo)
      val most = if (hi == null) Long.MaxValue else heads.of(hi)
      val lows = heads.lo
      val highs = heads.hi
      FileSets.where(lows.length) { i =>
        val isAbove = lows(i) > most || lows(i) == most && above(b.lo(i))
        isAbove || highs(i) < least || highs(i) == least && below(b.hi(i))
      }
    }

    override def covers(bounds: Bounds): BitSet = {
      val b = bytes(bounds)
      FileSets.where(b.lo.length) { i =>
        beginsWithin(b, i) && endsWithin(b, i) && (!isPoint || exact(b, i))
      }
    }

    private def beginsWithin(bounds: BytesBounds, i: Int): Boolean =
      lo == null || bounds.hasLo(i) && !below(bounds.lo(i))

    private def endsWithin(bounds: BytesBounds, i: Int): Boolean =
      hi == null || bounds.hasHi(i) && !above(bounds.hi(i))

    override def contains(values: Values, i: Int): Boolean = values match {
      case Values.Bytes(array) =>
        !above(array(i)) && !below(array(i))
      case _ => otherKind
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case that: BytesRange =>
        val least = if (UnsignedOrder.compare(that.lo, lo) > 0) that.lo else lo // null is less than all
        val narrower = if (hi == null || that.above(hi)) that else this
        val both = BytesRange(least, narrower.hi, narrower.hiIncluded)
        if (both.above(least)) NoValue else both
      case _: LongRange => otherKind
      case that =>
        that.intersect(this)
    }

    private def above(value: Array[Byte]): Boolean =
      if (value == null || hi == null) false
      else {
        val order = UnsignedOrder.compare(value, hi)
        order > 0 || (order == 0 && !hiIncluded)
      }

    private def below(value: Array[Byte]): Boolean =
      if (value == null || lo == null) false
      else UnsignedOrder.compare(value, lo) < 0

    private def bytes(bounds: Bounds): BytesBounds = bounds match {
      case strings: BytesBounds => strings
      case _ => otherKind
    }
  }

  /** Several single values, sorted. */
  final case class Points(values: Values) extends ValueSet {
    private val last = values.length - 1

    override def points: Option[Values] =
      if (values.length <= Values.MostLookedUp) Some(values) else None

    override def disjoint(bounds: Bounds): BitSet = {
      val los = bounds.los
      val highest = firstBelow(bounds)
      FileSets.where(los.length) { i =>
        val place = if (bounds.hasLo(i)) los.search(values, i) else 0
        val first = if (place < 0) -place - 1 else place
        first > last || highest(first, i)
      }
    }

    /** Whether a file's upper bound is known, and below one of the values; NaN does not count where none is asked for. */
    private def firstBelow(bounds: Bounds): (Int, Int) => Boolean = (bounds, values) match {
      case (b: LongBounds, Values.Longs(array)) =>
        val highs = b.hiUpTo(array(last))
        (value, i) => array(value) > highs(i)
      case _ =>
        (value, i) => bounds.hasHi(i) && values.compare(value, bounds.his, i) > 0
    }

    override def covers(bounds: Bounds): BitSet = FileSets.where(bounds.los.length) { i =>
      exact(bounds, i) && bounds.los.compare(i, bounds.his, i) == 0 && bounds.los.isIn(values, i)
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case range: Range =>
        only(range.contains(values, _))
      case Points(others) =>
        only(values.isIn(others, _))
      case nothing => nothing
    }

    private def only(test: Int => Boolean): ValueSet = {
      val places = Array.range(0, values.length).filter(test)
      if (places.isEmpty) NoValue else ofSorted(values.at(places))
    }
  }

  /** Some values, at least one. */
  def ofSorted(values: Values): ValueSet = values match {
    case Values.Longs(Array(point)) =>
      LongRange(point, point)
    case Values.Bytes(Array(point)) =>
      BytesRange(point, point, hiIncluded = true)
    case several =>
      Points(several)
  }

  /** Byte strings that begin with the prefix. */
  def ofPrefix(prefix: Array[Byte]): BytesRange = {
    val last = prefix.lastIndexWhere(_ != -1)
    val next = if (last < 0) null else prefix.take(last + 1)
    if (next != null) next(last) = (next(last) + 1).toByte
    BytesRange(prefix, next, hiIncluded = false)
  }

  /** Whether both bounds are values of the file. */
  private[pruning] def exact(bounds: Bounds, file: Int): Boolean =
    bounds.loExact(file) && bounds.hiExact(file)

  private def otherKind = throw new IllegalArgumentException("values of two kinds")
}
