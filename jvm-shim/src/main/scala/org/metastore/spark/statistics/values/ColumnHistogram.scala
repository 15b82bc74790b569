package org.metastore.spark.statistics.values

import java.util.Arrays
import java.util.Arrays.stream

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.cache.Memo
import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSizes, ColumnSummary}
import org.metastore.spark.statistics.objects.{SummaryRow, ValueCount}

/**
 * The distribution of a column's rows over its values: buckets of single counted values, and of ranges.
 *
 * @param nans       rows that are NaN: no bucket has them
 * @param isComplete whether all values have buckets of their own
 */
final class ColumnHistogram(
    val dataType: DataType,
    val axis: Axis,
    val buckets: Array[Bucket],
    val nulls: Double,
    val nans: Double,
    val isComplete: Boolean) {

  /** Results computed from this histogram: the rows that match conditions, and joins with other columns. */
  val derived = new Memo

  /** Rows that are neither null nor NaN. */
  lazy val values: Double = buckets.iterator.map(_.rows).sum

  def rows: Double = values + nulls + nans

  lazy val distinct: Double = buckets.iterator.map(_.distinct).sum + (if (nans > 0) 1 else 0)

  /** The bucket that ends last on the axis. Throws if there are no buckets. */
  lazy val last: Bucket = buckets.reduce((a, b) => if (b.until > a.until) b else a) // maxBy boxes each number

  private lazy val sums: Array[Double] = buckets.scanLeft(0.0)(_ + _.rows)
  private lazy val greatestEnds: Array[Double] =
    buckets.map(_.until).scanLeft(Double.NegativeInfinity)(math.max).tail

  /** The number of rows between two positions, both included. */
  def between(least: Double, most: Double): Double = {
    var i = firstNotBelow(least)
    var rows = 0.0
    while (i < buckets.length && buckets(i).from <= most) {
      if (buckets(i).from > least && i + 1 < buckets.length && greatestEnds(i + 1) <= most) {
        val until = lastWithin(most, i)
        rows += sums(until) - sums(i)
        i = until
      } else {
        rows += buckets(i).between(least, most)
        i += 1
      }
    }
    rows
  }

  private lazy val singles: java.util.HashSet[Any] = {
    val set = new java.util.HashSet[Any]
    for (bucket <- buckets)
      if (bucket.isSingle) set.add(identity(bucket.lo, bucket.from))
    set
  }

  /** Whether a value has a bucket of its own. */
  def hasSingle(position: Double, value: Any): Boolean = singles.contains(identity(value, position))

  // Long texts may have one position.
  private def identity(value: Any, position: Double): Any = value match {
    case text: UTF8String => text
    case bytes: Array[Byte] => java.nio.ByteBuffer.wrap(bytes)
    case _ => position + 0.0 // makes both zeros equal
  }

  /** A sample value: the upper end of the bucket at a share of the rows. */
  def sample(share: Double): Any = {
    val found = Arrays.binarySearch(sums, share * values)
    val bucket = if (found >= 0) found else -found - 2
    buckets(math.min(buckets.length - 1, math.max(0, bucket))).hi
  }

  /** The histogram on another axis. */
  def on(other: Axis): ColumnHistogram = {
    val moved = buckets.map(bucket => bucket.copy(from = other.at(bucket.lo), until = other.at(bucket.hi)))
    new ColumnHistogram(dataType, other, moved.sorted(Bucket.order), nulls, nans, isComplete)
  }

  /** The histogram with other buckets, nulls and NaN. */
  def withBuckets(buckets: Array[Bucket], nulls: Double, nans: Double): ColumnHistogram =
    new ColumnHistogram(dataType, axis, buckets, nulls, nans, isComplete)

  /** The histogram of the rows between two values, each with its position, and with other nulls and NaN. */
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

  private def firstNotBelow(position: Double): Int = first(greatestEnds(_) >= position)

  private def lastWithin(position: Double, from: Int): Int =
    math.max(from + 1, first(greatestEnds(_) > position))

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

  /** The histogram of a table's column; None if the statistics have neither all its values nor bins. */
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
      // A value with a larger error than count: its range is the better estimate.
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
        case Some(histogram) if rest > 0 =>
          val inBins = singles.filterNot(bucket => histogram.hasInfinities && isInfinite(bucket.lo))
          subtractSingles(histogram, inBins, listed.forall(_.error == 0), axis, catalyst)
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

  /** The listed values, and infinities with their counts: no bin has these. */
  private def withInfinities(
      listed: IndexedSeq[ValueCount],
      bins: Option[Histogram]): IndexedSeq[ValueCount] = {
    val infinite = for {
      histogram <- bins.toSeq
      (value, rows) <- Seq(
        Double.NegativeInfinity -> histogram.below,
        Double.PositiveInfinity -> histogram.above)
      if rows > 0
    } yield ValueCount(value, rows, 0, Map.empty)
    listed.filterNot(entry => infinite.exists(_.value == entry.value)) ++ infinite
  }

  /** The histogram from the bounds and counts of data files, a bucket a file; of many files, every n-th. */
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
      val axis = new Axis(dataType, Array.empty)
      val weight = filled.length.toDouble / math.max(1, sampled.length)
      val buckets = for ((f, lo, hi) <- bounded) yield {
        val from = axis.at(lo) - axis.unit
        val until = axis.at(hi)
        val values = summary.rows(f) - summary.nulls(f) - math.max(0L, summary.nans(f))
        val rows = weight * math.max(1.0, values.toDouble)
        if (sizes.distinct(f) == 1 || lo == hi) Bucket.single(lo, until, rows)
        else Bucket(lo, hi, from, until, rows, weight * sizes.distinct(f))
      }
      Some(new ColumnHistogram(
        dataType,
        axis,
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

  /**
   * The buckets of bins without the values that have buckets of their own.
   *
   * @param areExact whether the counts of these values are exact
   */
  private def subtractSingles(
      bins: Histogram,
      singles: Array[Bucket],
      areExact: Boolean,
      axis: Axis,
      catalyst: Any => Any): Array[Bucket] = {
    val edges = bins.edges.map(catalyst)
    val positions = edges.map(axis.at)
    var next = 0
    bins.counts.indices.iterator.map { i =>
      val (from, until) = (positions(i), positions(i + 1))
      val isLast = i + 1 == bins.counts.length
      var (rows, number) = (0.0, 0)
      while (next < singles.length && (singles(next).from <= until || isLast)) {
        rows += singles(next).rows
        number += 1
        next += 1
      }
      val areAllListed = areExact && axis.unit > 0 && number >= math.round((until - from) / axis.unit)
      val remaining = if (areAllListed) 0.0 else math.max(0.0, bins.counts(i) - rows)
      val distinct = math.max(1.0, bins.distincts.lift(i).fold(remaining)(_.toDouble) - number)
      if (bins.isSingle(i)) Bucket.single(edges(i + 1), until, remaining)
      else Bucket(
        edges(i),
        edges(i + 1),
        from,
        until,
        remaining,
        math.min(distinct, math.max(remaining, 1.0)))
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
