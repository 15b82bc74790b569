package org.metastore.spark.cardinality

import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.store.{Axis, Bucket, ColumnHistogram}

/** How likely a row of one column and a row of another have the same value. */
private[cardinality] object JoinSelectivity {
  private val MostPairs = 1 << 20 // of buckets: there are more only where thousands of values begin alike

  /** The share of all pairs of rows: T(A) T(B) times it is what joining them gives; 0 where that takes too long to find. */
  def share(one: ColumnHistogram, other: ColumnHistogram): Double =
    if (one.rows <= 0 || other.rows <= 0) 0
    else one.derived(other)(Double.box(pairs(one, other) / one.rows / other.rows)).doubleValue

  /**
   * How many rows of one have a value that the other has too; all of them where that takes too long to find.
   *
   * @param share of the other's rows, which conditions on other columns leave: rare values are less likely among them
   */
  def found(one: ColumnHistogram, other: ColumnHistogram, share: Double): Double = {
    val (left, right) = comparable(one, other)
    val byBuckets = sum(left, right) { (a, b) =>
      rowsFound(a, b, left, right) * ScanStatistics.expectDistinct(b.distinct, b.rows, share) / math.max(1.0, b.distinct)
    }.getOrElse(one.values)
    math.min(one.values, byBuckets) + (if (other.nans > 0) one.nans else 0)
  }

  private def pairs(one: ColumnHistogram, other: ColumnHistogram): Double = {
    val (left, right) = comparable(one, other)
    sum(left, right)((a, b) => pairs(a, b, left, right)).getOrElse(0.0) + one.nans * other.nans
  }

  /** Both on one axis: that of texts depends on what all begin with. */
  private def comparable(one: ColumnHistogram, other: ColumnHistogram): (ColumnHistogram, ColumnHistogram) = {
    val ends = Seq(one, other).filter(_.buckets.nonEmpty).flatMap(h => Seq(h.buckets.head.lo, h.buckets.last.hi))
    if (!ends.forall(_.isInstanceOf[UTF8String])) (one, other)
    else {
      val texts = ends.map(_.asInstanceOf[UTF8String]).sorted
      val axis = Axis.of(one.dataType, texts.headOption, texts.lastOption)
      (one.on(axis), other.on(axis))
    }
  }

  /** Over all buckets that meet; none where these are too many. */
  private def sum(one: ColumnHistogram, other: ColumnHistogram)(of: (Bucket, Bucket) => Double): Option[Double] = {
    var (found, first, compared) = (0.0, 0, 0)
    for (a <- one.buckets if compared <= MostPairs) {
      while (first < other.buckets.length && other.buckets(first).until < a.from) first += 1
      var next = first
      while (next < other.buckets.length && other.buckets(next).from <= a.until && compared <= MostPairs) {
        found += of(a, other.buckets(next))
        next += 1
        compared += 1
      }
    }
    if (compared > MostPairs) None else Some(found)
  }

  // As below: of two ranges all values of that with fewer are among those of the other.
  private def rowsFound(a: Bucket, b: Bucket, one: ColumnHistogram, other: ColumnHistogram): Double =
    if (a.isSingle && b.isSingle) { if (isSame(a, b)) a.rows else 0 }
    else if (a.isSingle) { if (b.from < a.from && a.from <= b.until && !other.hasSingle(a.from, a.lo)) a.rows else 0 }
    else if (b.isSingle) { if (a.from < b.from && b.from <= a.until && !one.hasSingle(b.from, b.lo)) a.rows / a.distinct else 0 }
    else {
      val (left, right) = (part(a, b), part(b, a))
      if (left <= 0 || right <= 0) 0 else left * a.rows * math.min(1.0, right * b.distinct / (left * a.distinct))
    }

  // The values of a range are taken to be among those of the other side, as those of a foreign key are.
  private def pairs(a: Bucket, b: Bucket, one: ColumnHistogram, other: ColumnHistogram): Double =
    if (a.isSingle && b.isSingle) { if (isSame(a, b)) a.rows * b.rows else 0 }
    else if (a.isSingle) { if (b.from < a.from && a.from <= b.until && !other.hasSingle(a.from, a.lo)) a.rows * b.rows / b.distinct else 0 }
    else if (b.isSingle) pairs(b, a, other, one)
    else {
      val (left, right) = (part(a, b), part(b, a))
      if (left <= 0 || right <= 0) 0 else left * a.rows * right * b.rows / math.max(left * a.distinct, right * b.distinct)
    }

  private def isSame(a: Bucket, b: Bucket): Boolean = a.from == b.from && ((a.lo, b.lo) match {
    case (x: UTF8String, y: UTF8String) => x == y
    case _ => true
  })

  /** The share of a range that the other one covers. */
  private def part(of: Bucket, by: Bucket): Double =
    if (of.until <= of.from) 1 else (math.min(of.until, by.until) - math.max(of.from, by.from)) / (of.until - of.from)
}
