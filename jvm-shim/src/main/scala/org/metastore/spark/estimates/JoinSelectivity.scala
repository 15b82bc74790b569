package org.metastore.spark.estimates

import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.values.{Axis, Bucket, ColumnHistogram}

/** Estimates joins of two columns by their histograms. */
private[estimates] object JoinSelectivity {
  private val MostPairs = 1 << 20 // of buckets: only thousands of values with a common prefix make more

  /** The share of all pairs of rows that have equal values and so join; 0 if it takes too long. */
  def share(column: ColumnHistogram, other: ColumnHistogram): Double =
    if (column.rows <= 0 || other.rows <= 0) 0
    else column.derived(other)(Double.box(pairs(column, other) / column.rows / other.rows)).doubleValue

  /** The number of rows whose value is in the other column too; all of them if it takes too long. */
  def matchingRows(column: ColumnHistogram, other: ColumnHistogram, share: Double): Double = {
    val (left, right) = comparable(column, other)
    val byBuckets = sum(left, right) { (a, b) =>
      val remaining = DistinctEstimate.expectDistinct(b.distinct, b.rows, share)
      rowsOfBucket(a, b, left, right) * remaining / math.max(1.0, b.distinct)
    }
    val values = math.min(column.values, byBuckets.getOrElse(column.values))
    val nans = if (other.nans > 0) column.nans else 0
    values + nans
  }

  private def pairs(column: ColumnHistogram, other: ColumnHistogram): Double = {
    val (left, right) = comparable(column, other)
    val byBuckets = sum(left, right)((a, b) => rowsOfBucket(a, b, left, right) * b.rows / b.distinct)
    byBuckets.getOrElse(0.0) + column.nans * other.nans
  }

  /** Both columns on one axis: that of texts depends on the prefix of all of them. */
  private def comparable(
      column: ColumnHistogram,
      other: ColumnHistogram): (ColumnHistogram, ColumnHistogram) = {
    val ends = endsOf(column) ++ endsOf(other)
    val texts = ends.collect { case text: UTF8String => text }
    if (texts.size < ends.size) (column, other)
    else {
      val sorted = texts.sortWith(isLess)
      val axis = Axis.between(column.dataType, sorted.headOption, sorted.lastOption)
      (column.on(axis), other.on(axis))
    }
  }

  private def endsOf(column: ColumnHistogram): Seq[Any] =
    if (column.buckets.isEmpty) Nil
    else Seq(column.buckets.head.lo, column.buckets.last.hi)

  // Not `compareTo`: in its own tests Spark lets it throw, as it ignores collations. These texts have none.
  private def isLess(column: UTF8String, other: UTF8String): Boolean =
    ByteArray.compareBinary(column.getBytes, other.getBytes) < 0

  /** The sum over all pairs of buckets that overlap; None if there are too many pairs. */
  private def sum(column: ColumnHistogram, other: ColumnHistogram)(
      rows: (Bucket, Bucket) => Double): Option[Double] = {
    val buckets = other.buckets
    var sum = 0.0
    var first = 0
    var compared = 0
    for (a <- column.buckets if compared <= MostPairs) {
      while (first < buckets.length && buckets(first).until < a.from) first += 1
      var next = first
      while (next < buckets.length && buckets(next).from <= a.until && compared <= MostPairs) {
        sum += rows(a, buckets(next))
        next += 1
        compared += 1
      }
    }
    Optional.when(compared <= MostPairs)(sum)
  }

  // A range's values are assumed to be values of the other side, as with a foreign key. Of two ranges, the
  // one with fewer values has only values of the other.
  private def rowsOfBucket(a: Bucket, b: Bucket, column: ColumnHistogram, other: ColumnHistogram): Double =
    if (a.isSingle) {
      val meets = if (b.isSingle) isSame(a, b) else isOnlyInRange(a, b, other)
      if (meets) a.rows else 0
    } else if (b.isSingle) {
      if (isOnlyInRange(b, a, column)) a.rows / a.distinct else 0
    } else rowsOfRanges(a, b)

  /** Whether a single value lies in a range of a column that has no bucket for the value. */
  private def isOnlyInRange(single: Bucket, range: Bucket, column: ColumnHistogram): Boolean =
    isInside(single, range) && !column.hasSingle(single.from, single.lo)

  private def rowsOfRanges(a: Bucket, b: Bucket): Double = {
    val (left, right) = (part(a, b), part(b, a))
    if (left <= 0 || right <= 0) 0
    else left * a.rows * math.min(1.0, right * b.distinct / (left * a.distinct))
  }

  /** Whether a single value lies in a range; the lower end belongs to the range before. */
  private def isInside(single: Bucket, range: Bucket): Boolean =
    range.from < single.from && single.from <= range.until

  private def isSame(a: Bucket, b: Bucket): Boolean = {
    val areTexts = a.lo.isInstanceOf[UTF8String] // different texts may have one position
    a.from == b.from && (!areTexts || a.lo == b.lo)
  }

  /** The share of a range that the other one covers. */
  private def part(range: Bucket, by: Bucket): Double =
    if (range.until <= range.from) 1
    else {
      val common = math.min(range.until, by.until) - math.max(range.from, by.from)
      common / (range.until - range.from)
    }
}
