package org.metastore.spark.statistics.values

import java.util.Arrays
import java.util.Arrays.stream

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.cache.Memo
import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSizes, ColumnSummary}
import org.metastore.spark.statistics.objects.{SummaryRow, ValueCount}

/**
 * How the rows of a column are spread over its values: buckets of single values where their counts are kept, ranges elsewhere.
 *
 * @param nans rows that are NaN: no bucket has them
 */
final class ColumnHistogram(
    val dataType: DataType,
    val axis: Axis,
    val buckets: Array[Bucket],
    val nulls: Double,
    val nans: Double,
    val isComplete: Boolean) {

  /** Histograms of the rows that pass conditions, and of joins with other columns. */
  val derived = new Memo

  /** Rows that are neither null nor NaN. */
  lazy val values: Double = buckets.iterator.map(_.rows).sum

  def rows: Double = values + nulls + nans

  lazy val distinct: Double = buckets.iterator.map(_.distinct).sum + (if (nans > 0) 1 else 0)

  /** The bucket that ends last on the axis, of a histogram that has buckets. */
  lazy val last: Bucket = buckets.reduce((a, b) => if (b.until > a.until) b else a) // maxBy boxes each number

  private lazy val sums: Array[Double] = buckets.scanLeft(0.0)(_ + _.rows)
  private lazy val lasts: Array[Double] =
    buckets.map(_.until).scanLeft(Double.NegativeInfinity)(math.max).tail

  /** Rows with values between two places, both included. */
  def between(least: Double, most: Double): Double = {
    var i = firstNotBelow(least)
    var found = 0.0
    while (i < buckets.length && buckets(i).from <= most) {
      if (buckets(i).from > least && i + 1 < buckets.length && lasts(i + 1) <= most) {
        val until = lastWithin(most, i)
        found += sums(until) - sums(i)
        i = until
      } else {
        found += buckets(i).between(least, most)
        i += 1
      }
    }
    found
  }

  private lazy val singles: java.util.HashSet[Any] = {
    val set = new java.util.HashSet[Any]
    for (bucket <- buckets)
      if (bucket.isSingle) set.add(identity(bucket.lo, bucket.from))
    set
  }

  /** Whether a value has a bucket of its own. */
  def hasSingle(place: Double, value: Any): Boolean = singles.contains(identity(value, place))

  // Long texts may share a place.
  private def identity(value: Any, place: Double): Any = value match {
    case text: UTF8String => text
    case bytes: Array[Byte] => java.nio.ByteBuffer.wrap(bytes)
    case _ => place + 0.0 // of both zeros
  }

  /** The value under a share of the values, as a sample of them. */
  def sample(share: Double): Any = {
    val place = Arrays.binarySearch(sums, share * values)
    buckets(math.min(buckets.length - 1, math.max(0, if (place >= 0) place else -place - 2))).hi
  }

  /** The histogram on another axis of its values. */
  def on(other: Axis): ColumnHistogram = {
    val moved = buckets.map(bucket => bucket.copy(from = other.at(bucket.lo), until = other.at(bucket.hi)))
    new ColumnHistogram(dataType, other, moved.sorted(Bucket.order), nulls, nans, isComplete)
  }

  /** The histogram with other buckets. */
  def withBuckets(kept: Array[Bucket], nulls: Double, nans: Double): ColumnHistogram =
    new ColumnHistogram(dataType, axis, kept, nulls, nans, isComplete)

  /** The histogram of the rows between two values at their places, with other nulls and NaN. */
  def between(least: (Double, Any), most: (Double, Any), nulls: Double, nans: Double): ColumnHistogram = {
    val inside = buckets.filter(bucket => bucket.until >= least._1 && bucket.from <= most._1)
    withBuckets(inside.map(cut(_, least, most)), nulls, nans)
  }

  private def cut(bucket: Bucket, least: (Double, Any), most: (Double, Any)): Bucket =
    if (bucket.isSingle) bucket
    else {
      val rows = bucket.between(least._1, most._1)
      val (from, lo) = if (bucket.from < least._1) least else (bucket.from, bucket.lo)
      val (until, hi) = if (bucket.until > most._1) most else (bucket.until, bucket.hi)
      Bucket(lo, hi, from, until, rows, math.min(bucket.distinct, math.max(1.0, rows)))
    }

  private def firstNotBelow(place: Double): Int = first(lasts(_) >= place)
  private def lastWithin(place: Double, from: Int): Int = math.max(from + 1, first(lasts(_) > place))

  private def first(test: Int => Boolean): Int = {
    var (low, high) = (0, buckets.length)
    while (low < high) {
      val middle = (low + high) / 2
      if (test(middle)) high = middle else low = middle + 1
    }
    low
  }

  private[statistics] def weight: Long =
    200 + buckets.iterator.map(bucket => 120L + textBytes(bucket.lo) + textBytes(bucket.hi)).sum

  private def textBytes(value: Any): Int = value match {
    case text: UTF8String => text.numBytes
    case bytes: Array[Byte] => bytes.length
    case _ => 0
  }
}

object ColumnHistogram {
  private val MostFiles = 2048

  /** The histogram of a column of a table; None where the statistics have neither all its values nor bins. */
  def fromSummary(
      dataType: DataType,
      row: SummaryRow,
      listed: IndexedSeq[ValueCount],
      bins: Option[Histogram]): Option[ColumnHistogram] =
    for {
      rows <- row.rows
      nulls <- row.nulls
      if bins.isDefined || row.frequencies.contains("complete")
    } yield {
      def catalyst(value: Any) = CatalystValue.catalyst(value, dataType)
      val nans = row.nans.getOrElse(0L).toDouble
      val axis = Axis.between(dataType, row.lo.map(catalyst), row.hi.map(catalyst))
      // What files left out of their lists may be most of a value's rows: its range tells more then.
      val counted =
        withInfinities(listed, bins).filterNot(entry => isNaN(entry.value) || entry.error > entry.frequency)
      val singles = counted.map { entry =>
        val value = catalyst(entry.value)
        Bucket.single(value, axis.at(value), entry.frequency.toDouble)
      }.toArray.sorted(Bucket.order)
      val rest = rows - nulls - nans - singles.iterator.map(_.rows).sum
      val isComplete = row.frequencies.contains("complete") && rest == 0
      val unlisted = math.max(
        1.0,
        row.distinct.getOrElse(rest.toLong).toDouble - singles.length - (if (nans > 0) 1 else 0))
      val ranges = bins match {
        case Some(known) if rest > 0 =>
          val inBins = singles.filterNot(bucket => known.hasInfinities && isInfinite(bucket.lo))
          residual(known, inBins, listed.forall(_.error == 0), axis, catalyst)
        case _ => Array.empty[Bucket]
      }
      new ColumnHistogram(
        dataType,
        axis,
        (singles ++ scaled(ranges, rest, unlisted)).sorted(Bucket.order),
        nulls.toDouble,
        nans,
        isComplete)
    }

  /** Values of which counts are kept, the infinite ones among them: they are in no bin. */
  private def withInfinities(
      listed: IndexedSeq[ValueCount],
      bins: Option[Histogram]): IndexedSeq[ValueCount] = {
    val infinite = for {
      known <- bins.toSeq
      (value, rows) <- Seq(Double.NegativeInfinity -> known.below, Double.PositiveInfinity -> known.above)
      if rows > 0
    } yield ValueCount(value, rows, 0, Map.empty)
    listed.filterNot(entry => infinite.exists(_.value == entry.value)) ++ infinite
  }

  /** The histogram of data files by their bounds and counts: each is a bucket; of very many every n-th stands for n of them. */
  def fromFiles(
      dataType: DataType,
      summary: ColumnSummary,
      sizes: ColumnSizes,
      files: Array[Int],
      isComplete: Boolean): Option[ColumnHistogram] = {
    val counted = files.filter(f => summary.hasNullCount(f) && sizes.distinct(f) >= 0)
    val filled = counted.filter(f => summary.rows(f) > summary.nulls(f))
    val sampled = if (isComplete) filled else sample(filled)
    val bounded = for {
      f <- sampled
      lo <- CatalystValue.lo(summary, f)
      hi <- CatalystValue.hiNumber(summary, f) if !isNaN(hi)
    } yield (f, lo, hi)
    if (counted.isEmpty || bounded.length < sampled.length || !filled.forall(summary.bounds.hasBoth)) None
    else {
      val places = new Axis(dataType, Array.empty)
      val weight = filled.length.toDouble / math.max(1, sampled.length)
      val buckets = for ((f, lo, hi) <- bounded) yield {
        val from = places.at(lo) - places.unit
        val until = places.at(hi)
        val values = summary.rows(f) - summary.nulls(f) - math.max(0L, summary.nans(f))
        val rows = weight * math.max(1.0, values.toDouble)
        if (sizes.distinct(f) == 1 || lo == hi) Bucket.single(lo, until, rows)
        else Bucket(lo, hi, from, until, rows, weight * sizes.distinct(f))
      }
      Some(new ColumnHistogram(
        dataType,
        places,
        buckets.sorted(Bucket.order),
        stream(counted).mapToDouble(summary.nulls(_).toDouble).sum,
        stream(counted).mapToDouble(f => math.max(0L, summary.nans(f)).toDouble).sum,
        isComplete))
    }
  }

  private def sample(files: Array[Int]): Array[Int] = {
    val step = math.max(1, files.length / MostFiles)
    Array.tabulate((files.length + step - 1) / step)(i => files(i * step))
  }

  /** The bins without the values that have buckets of their own; these may have more rows if they are not `counted`. */
  private def residual(
      bins: Histogram,
      singles: Array[Bucket],
      counted: Boolean,
      axis: Axis,
      catalyst: Any => Any): Array[Bucket] = {
    val edges = bins.edges.map(catalyst)
    val places = edges.map(axis.at)
    var next = 0
    bins.counts.indices.iterator.map { i =>
      var (rows, number) = (0.0, 0)
      while (next < singles.length && (singles(next).from <= places(i + 1) || i + 1 == bins.counts.length)) {
        rows += singles(next).rows
        number += 1
        next += 1
      }
      val isListed = counted && axis.unit > 0 && number >= math.round((places(i + 1) - places(i)) / axis.unit)
      val left = if (isListed) 0.0 else math.max(0.0, bins.counts(i) - rows)
      val distinct = math.max(1.0, bins.distincts.lift(i).fold(left)(_.toDouble) - number)
      if (bins.isLone(i)) Bucket.single(edges(i + 1), places(i + 1), left)
      else Bucket(
        edges(i),
        edges(i + 1),
        places(i),
        places(i + 1),
        left,
        math.min(distinct, math.max(left, 1.0)))
    }.filter(_.rows > 0).toArray
  }

  private def scaled(ranges: Array[Bucket], rows: Double, distinct: Double): Array[Bucket] = {
    val allRows = ranges.iterator.map(_.rows).sum
    val allDistinct = ranges.iterator.map(_.distinct).sum
    ranges.map { range =>
      val rowsOfRange = range.rows * rows / allRows
      val distinctOfRange = math.min(rowsOfRange, range.distinct * distinct / allDistinct)
      range.copy(rows = rowsOfRange, distinct = math.max(math.min(1.0, rowsOfRange), distinctOfRange))
    }
  }

  private def isInfinite(value: Any): Boolean = asDouble(value).isInfinite

  private[spark] def isNaN(value: Any): Boolean = asDouble(value).isNaN

  /** A floating-point value; 0 for any other. */
  private def asDouble(value: Any): Double = value match {
    case number: Double => number
    case number: Float => number.toDouble
    case _ => 0
  }
}
