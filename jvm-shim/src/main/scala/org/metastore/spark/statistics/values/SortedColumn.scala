package org.metastore.spark.statistics.values

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{CatalystValue, FileSummary, TypePromotion}
import org.metastore.spark.statistics.objects.{Encoding, Values}

/**
 * A column whose rows are sorted by it as Spark sorts: nulls first, NaN last. Rows are assumed to be spread
 * evenly over a bucket; for texts the bounds are the bucket's ends.
 */
private[spark] final class SortedColumn(column: ColumnHistogram) {
  import SortedColumn._

  private val dataType = column.dataType
  private val order: Ordering[Any] =
    (a, b) => CatalystValue.point(a, dataType).compare(0, CatalystValue.point(b, dataType), 0)

  // Different values may have one position on the axis.
  private val buckets = if (column.isComplete) column.buckets.sortBy(_.lo)(order) else column.buckets

  /** The number of rows before the nulls, before each bucket and before NaN, and of all rows. */
  private val sums: Array[Double] = (column.nulls +: buckets.map(_.rows) :+ column.nans).scanLeft(0.0)(_ + _)

  /** The statistics of a run of the `rows` sorted rows. */
  def run(from: Long, until: Long, rows: Long): SortedRun = {
    val parts = partsOf(from, until, rows)
    val (values, nullsAndNaN) = parts.partition(part => part.item > 0 && part.item <= buckets.length)
    def count(item: Int) = {
      val rows = for (part <- nullsAndNaN if part.item == item) yield part.rows
      Some(rows.sum)
    }
    val ends = values.flatMap(endsOf)
    def bound(of: Seq[Any] => Any) = Optional.when(ends.nonEmpty)(of(ends))
    val summary = FileSummary(
      until - from,
      count(0),
      count(buckets.length + 1),
      bound(_.min(order)),
      bound(_.max(order)),
      column.isComplete,
      column.isComplete,
      None,
      None,
      None)
    val inside = parts match {
      case Seq(part) if nullsAndNaN.nonEmpty || buckets(part.item - 1).isSingle =>
        Some((part.from, part.until, part.total))
      case _ => None
    }
    new SortedRun(summary, Optional.when(column.isComplete)(listed(values)), inside)
  }

  /**
   * The number of files with a value within their bounds, if `rows` rows are split evenly into `most` files.
   */
  def filesWith(value: Any, most: Int, rows: Long): Int = {
    val files = math.min(most.toLong, rows).toInt // no file is empty
    def at(file: Int): Long = (BigInt(rows) * file / files).toLong
    def first(test: FileSummary => Boolean): Int = {
      var (low, high) = (0, files)
      while (low < high) {
        val middle = (low + high) / 2
        if (test(run(at(middle), at(middle + 1), rows).summary)) high = middle
        else low = middle + 1
      }
      low
    }
    // A run without bounds has only nulls, which come first, or only NaN, which come last.
    def isNaN(run: FileSummary) = run.nans.exists(_ > 0)
    val until = first(run => run.lo.fold(isNaN(run))(order.gt(_, value)))
    val from = first(run => run.hi.fold(isNaN(run))(order.gteq(_, value)))
    until - from
  }

  private def partsOf(from: Long, until: Long, rows: Long): Seq[Part] = {
    val scale = if (sums.last > 0) rows / sums.last else 0.0
    def firstRow(item: Int): Long =
      if (item + 1 == sums.length) rows
      else math.min(rows, math.round(sums(item) * scale))
    var (low, high) = (0, sums.length - 2)
    while (low < high) {
      val middle = (low + high) / 2
      if (firstRow(middle + 1) > from) high = middle else low = middle + 1
    }
    val items = Iterator.range(low, sums.length - 1).takeWhile(firstRow(_) < until)
    val parts = items.map { item =>
      val begin = firstRow(item)
      val end = firstRow(item + 1)
      Part(item, math.max(from, begin) - begin, math.min(until, end) - begin, end - begin)
    }
    parts.filter(_.rows > 0).toList
  }

  private def endsOf(part: Part): Seq[Any] = {
    val bucket = buckets(part.item - 1)
    def valueAt(row: Long, default: Any) =
      if (row == 0) bucket.lo
      else if (row == part.total) bucket.hi
      else Bucket.middle(bucket.lo, bucket.hi, row.toDouble / part.total).getOrElse(default)
    if (bucket.isSingle) Seq(bucket.lo)
    else Seq(valueAt(part.from, bucket.lo), valueAt(part.until, bucket.hi))
  }

  private def listed(values: Seq[Part]): Values = {
    val all = values.map(part => buckets(part.item - 1).lo)
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues))
      Values.Bytes(all.map(CatalystValue.orderedBytes(_, dataType)).toArray)
    else Values.Longs(all.map(CatalystValue.orderedLong(_, dataType)).toArray)
  }
}

private object SortedColumn {

  /** A part of the `total` rows of an item: the nulls, a bucket, or NaN. */
  private final case class Part(item: Int, from: Long, until: Long, total: Long) {
    def rows: Long = until - from
  }
}

/**
 * Consecutive rows of a sorted column.
 *
 * @param listed all values but NULL and NaN, sorted, if they are known
 * @param inside for rows with one value: their range among all rows with it, and the number of all these rows
 */
private[spark] final class SortedRun(
    val summary: FileSummary,
    val listed: Option[Values],
    val inside: Option[(Long, Long, Long)])
