package org.metastore.spark.pruning

import java.util.BitSet

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{Bounds, BytesBounds, LongBounds}
import org.metastore.spark.statistics.objects.{UnsignedOrder, Values}

/** The values that a leaf accepts, in the order of the bounds. */
private[pruning] sealed trait ValueSet {

  /** The files whose bounds enclose no value of the set. */
  def disjoint(bounds: Bounds): BitSet

  /** The files whose bounds enclose only values of the set. */
  def covers(bounds: Bounds): BitSet

  /** The values that are also in another set of the same kind. */
  def intersect(other: ValueSet): ValueSet

  /** The values, if they are single ones and few enough to be looked up. */
  def points: Option[Values] = None
}

private[pruning] object ValueSet {

  /** No value at all. */
  object NoValue extends ValueSet {
    override def disjoint(bounds: Bounds): BitSet = FileSets.all(bounds.los.length)
    override def covers(bounds: Bounds): BitSet = new BitSet
    override def intersect(other: ValueSet): ValueSet = this
  }

  /** A range of values. */
  sealed trait Range extends ValueSet {
    def contains(values: Values, i: Int): Boolean

    /** The values that are also in another range of the same kind. */
    protected def intersectRange(other: Range): ValueSet

    override final def intersect(other: ValueSet): ValueSet = other match {
      case range: Range =>
        intersectRange(range)
      case points =>
        points.intersect(this)
    }
  }

  /** Integers from `lo` to `hi`, both included; the extremes mean no limit. */
  final case class LongRange(lo: Long, hi: Long) extends Range {
    private def isPoint: Boolean = lo == hi

    override def points: Option[Values] =
      Optional.when(isPoint)(Values.Longs(Array(lo)))

    override def disjoint(bounds: Bounds): BitSet = {
      val longs = bounds.asInstanceOf[LongBounds]
      val lows = longs.lo
      val highs = longs.hiUpTo(hi)
      FileSets.where(lows.length)(i => lows(i) > hi || highs(i) < lo)
    }

    override def covers(bounds: Bounds): BitSet = {
      val longs = bounds.asInstanceOf[LongBounds]
      val within = FileSets.where(longs.lo.length)(i => longs.lo(i) >= lo && longs.hi(i) <= hi)
      if (isPoint) whereExact(bounds, within) else within
    }

    override def contains(values: Values, i: Int): Boolean = {
      val value = values.asInstanceOf[Values.Longs].array(i)
      lo <= value && value <= hi
    }

    override protected def intersectRange(other: Range): ValueSet = {
      val that = other.asInstanceOf[LongRange]
      val least = math.max(lo, that.lo)
      val most = math.min(hi, that.hi)
      if (least > most) NoValue else LongRange(least, most)
    }
  }

  /** Byte strings from `lo`, included, to `hi`, included or not; null means no limit. */
  final case class BytesRange(lo: Array[Byte], hi: Array[Byte], hiIncluded: Boolean) extends Range {
    private val isPoint = hi != null && UnsignedOrder.compare(lo, hi) == 0 // null is less than all

    override def points: Option[Values] =
      Optional.when(isPoint)(Values.Bytes(Array(lo)))

    override def disjoint(bounds: Bounds): BitSet = {
      val bytes = bounds.asInstanceOf[BytesBounds]
      val heads = bytes.heads
      val least = if (lo == null) Long.MinValue else heads.head(lo)
      val most = if (hi == null) Long.MaxValue else heads.head(hi)
      val lows = heads.lo
      val highs = heads.hi
      FileSets.where(lows.length) { i =>
        val isAbove = lows(i) > most || lows(i) == most && above(bytes.lo(i))
        isAbove || highs(i) < least || highs(i) == least && below(bytes.hi(i))
      }
    }

    override def covers(bounds: Bounds): BitSet = {
      val bytes = bounds.asInstanceOf[BytesBounds]
      val within = FileSets.where(bytes.lo.length)(i => beginsWithin(bytes.lo(i)) && endsWithin(bytes.hi(i)))
      if (isPoint) whereExact(bounds, within) else within
    }

    private def beginsWithin(least: Array[Byte]): Boolean =
      lo == null || UnsignedOrder.compare(least, lo) >= 0 // null is less than all

    private def endsWithin(most: Array[Byte]): Boolean =
      hi == null || most != null && !above(most)

    override def contains(values: Values, i: Int): Boolean = {
      val value = values.asInstanceOf[Values.Bytes].array(i)
      !above(value) && !below(value)
    }

    override protected def intersectRange(other: Range): ValueSet = {
      val that = other.asInstanceOf[BytesRange]
      val least = if (UnsignedOrder.compare(that.lo, lo) > 0) that.lo else lo // null is less than all
      val narrower = if (hi == null || that.above(hi)) that else this
      val both = BytesRange(least, narrower.hi, narrower.hiIncluded)
      if (both.above(least)) NoValue else both
    }

    private def above(value: Array[Byte]): Boolean = hi != null && {
      val order = UnsignedOrder.compare(value, hi) // null is less than all
      if (hiIncluded) order > 0 else order >= 0
    }

    private def below(value: Array[Byte]): Boolean =
      value != null && UnsignedOrder.compare(value, lo) < 0 // null is less than all
  }

  /** Several single values, sorted. */
  final case class Points(values: Values) extends ValueSet {
    private val last = values.length - 1

    override def points: Option[Values] =
      Optional.when(values.length <= Values.MostLookedUp)(values)

    override def disjoint(bounds: Bounds): BitSet = {
      val los = bounds.los
      val isHiBelowValue = isHiBelow(bounds)
      FileSets.where(los.length) { i =>
        val found = if (bounds.hasLo(i)) los.search(values, i) else 0
        val first = if (found < 0) -found - 1 else found // the first value that is not below the lower bound
        first > last || isHiBelowValue(first, i)
      }
    }

    /** Whether a file's upper bound is below a value. NaN is no upper bound, unless NaN is a value. */
    private def isHiBelow(bounds: Bounds): (Int, Int) => Boolean = (bounds, values) match {
      case (b: LongBounds, Values.Longs(array)) =>
        val highs = b.hiUpTo(array(last))
        (value, i) => array(value) > highs(i)
      case _ =>
        (value, i) => bounds.hasHi(i) && values.compare(value, bounds.his, i) > 0
    }

    override def covers(bounds: Bounds): BitSet = FileSets.where(bounds.los.length) { i =>
      bounds.areExact(i) && bounds.los.compare(i, bounds.his, i) == 0 && bounds.los.isIn(values, i)
    }

    override def intersect(other: ValueSet): ValueSet = other match {
      case range: Range =>
        select(range.contains(values, _))
      case Points(that) =>
        select(values.isIn(that, _))
      case nothing => nothing
    }

    private def select(test: Int => Boolean): ValueSet = {
      val selected = Array.range(0, values.length).filter(test)
      if (selected.isEmpty) NoValue else fromSorted(values.at(selected))
    }
  }

  /** The set of at least one value. */
  def fromSorted(values: Values): ValueSet = values match {
    case Values.Longs(Array(point)) =>
      LongRange(point, point)
    case Values.Bytes(Array(point)) =>
      BytesRange(point, point, hiIncluded = true)
    case several =>
      Points(several)
  }

  /** Byte strings that begin with the prefix. */
  def withPrefix(prefix: Array[Byte]): BytesRange =
    BytesRange(prefix, UnsignedOrder.afterPrefix(prefix).orNull, hiIncluded = false)

  private def whereExact(bounds: Bounds, files: BitSet): BitSet =
    FileSets.where(files.length)(i => files.get(i) && bounds.areExact(i))
}
