package org.metastore.spark.statistics.values

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{CatalystValue, FileSummary, TypePromotion}
import org.metastore.spark.statistics.objects.{Encoding, Values}

/**
 * A column of rows that are sorted by it as Spark sorts: nulls first, NaN last.
 *
 * Of a histogram ends of runs lie evenly in their bins, those of texts at the edges of these.
 */
private[spark] final class SortedColumn(column: ColumnHistogram) {
  import SortedColumn._

  private val dataType = column.dataType
  private val order: Ordering[Any] =
    (a, b) => CatalystValue.point(a, dataType).compare(0, CatalystValue.point(b, dataType), 0)

  // Different values may share a place on the axis.
  private val buckets = if (column.isComplete) column.buckets.sortBy(_.lo)(order) else column.buckets

  /** Rows before the nulls, before each bucket, before NaN, and all. */
  private val sums: Array[Double] = (column.nulls +: buckets.map(_.rows) :+ column.nans).scanLeft(0.0)(_ + _)

  /** The statistics of some of `rows` rows, by their places in the order. */
  def run(from: Long, until: Long, rows: Long): SortedRun = {
    val parts = partsOf(from, until, rows)
    val (values, others) = parts.partition(part => part.item > 0 && part.item <= buckets.length)
    def count(item: Int) = {
      val rows = for (part <- others if part.item == item) yield part.rows
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
      case Seq(part) if others.nonEmpty || buckets(part.item - 1).isSingle =>
        Some((part.from, part.until, part.of))
      case _ => None
    }
    new SortedRun(summary, Optional.when(column.isComplete)(listed(values)), inside)
  }

  /** How many of at most so many files of equally many rows, in their order, have a value between their bounds. */
  def filesWith(value: Any, most: Int, rows: Long): Int = {
    val files = math.min(most.toLong, rows).toInt // none is empty
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
    // Runs without bounds are nulls, which come first, or NaN, which come last.
    def isNaN(run: FileSummary) = run.nans.exists(_ > 0)
    val until = first(run => run.lo.fold(isNaN(run))(order.gt(_, value)))
    val from = first(run => run.hi.fold(isNaN(run))(order.gteq(_, value)))
    until - from
  }

  private def partsOf(from: Long, until: Long, rows: Long): Seq[Part] = {
    val scale = if (sums.last > 0) rows / sums.last else 0.0
    def place(item: Int): Long =
      if (item + 1 == sums.length) rows
      else math.min(rows, math.round(sums(item) * scale))
    var (low, high) = (0, sums.length - 2)
    while (low < high) {
      val middle = (low + high) / 2
      if (place(middle + 1) > from) high = middle else low = middle + 1
    }
    val items = Iterator.range(low, sums.length - 1).takeWhile(place(_) < until)
    val parts = items.map { item =>
      val begin = place(item)
      val end = place(item + 1)
      Part(item, math.max(from, begin) - begin, math.min(until, end) - begin, end - begin)
    }
    parts.filter(_.rows > 0).toList
  }

  private def endsOf(part: Part): Seq[Any] = {
    val bucket = buckets(part.item - 1)
    def at(place: Long, outward: Any) =
      if (place == 0) bucket.lo
      else if (place == part.of) bucket.hi
      else Bucket.middle(bucket.lo, bucket.hi, place.toDouble / part.of).getOrElse(outward)
    if (bucket.isSingle) Seq(bucket.lo)
    else Seq(at(part.from, bucket.lo), at(part.until, bucket.hi))
  }

  private def listed(values: Seq[Part]): Values = {
    val all = values.map(part => buckets(part.item - 1).lo)
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues))
      Values.Bytes(all.map(CatalystValue.orderedBytes(_, dataType)).toArray)
    else Values.Longs(all.map(CatalystValue.orderedLong(_, dataType)).toArray)
  }
}

private object SortedColumn {

  /** Rows of the `item`-th of nulls, buckets and NaN, by their places among the `of` that it has. */
  private final case class Part(item: Int, from: Long, until: Long, of: Long) {
    def rows: Long = until - from
  }
}

/**
 * Consecutive rows of a sorted column.
 *
 * @param listed all of their values but NULL and NaN, sorted, where they are known
 * @param inside where they have one value: their places among the rows with it, and how many these are
 */
private[spark] final class SortedRun(
    val summary: FileSummary,
    val listed: Option[Values],
    val inside: Option[(Long, Long, Long)])
