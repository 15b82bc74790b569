package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.metastore.spark.statistics.columns.ColumnSummary
import org.metastore.spark.statistics.objects.Values

/**
 * Finds the files that hold none of the first rows in an order: enough rows that are certain to match come strictly before every row
 * of such a file. Rows that are equal in the order may come in any sequence.
 *
 * @param summary statistics of the column that orders the rows
 * @param deleted deleted rows of each file
 */
private[spark] final class TopRows(
    limit: Long,
    order: RowOrder,
    summary: ColumnSummary,
    deleted: Int => DeletedRows) {
  import TopRows._

  private val bounds = summary.bounds
  private val nullsPlace = Place(if (order.nullsFirst) NullsFirst else NullsLast)

  /**
   * The files that need not be read.
   *
   * @param candidates files whose rows lie within their bounds
   * @param full       files all of whose live rows match
   */
  def beyond(candidates: BitSet, full: BitSet): BitSet = threshold(full).fold(new BitSet) { last =>
    FileSets.where(summary.length) { file =>
      candidates.get(file) && summary.hasStatistics(file) && isBeyond(file, last)
    }
  }

  /** Whether every row of a file comes after a place; false where it has no rows. */
  private def isBeyond(file: Int, last: Place): Boolean = earliest(file).exists(inOrder.compare(_, last) > 0)

  /** Whether enough rows are certain to come at or before some place; `full` as of `beyond`. */
  def isLimitReached(full: BitSet): Boolean = threshold(full).isDefined

  /** The place at or before which enough rows are certain to be. */
  private def threshold(full: BitSet): Option[Place] = {
    val first = new FirstRows(limit)
    full.stream.filter(summary.hasStatistics(_)).forEach(file =>
      for ((place, rows) <- certainRows(file)) first.add(place, rows))
    first.last
  }

  /** The first so many rows of those that are added: of a million files few places are kept. */
  private final class FirstRows(wanted: Long) {
    private val places =
      mutable.PriorityQueue.empty[(Place, Long)](Ordering.by((_: (Place, Long))._1)(inOrder))
    private var rows = 0L

    def add(place: Place, count: Long): Unit =
      if (rows < wanted || inOrder.compare(place, places.head._1) < 0) {
        places += place -> count
        rows += count
        while (rows - places.head._2 >= wanted) rows -= places.dequeue()._2
      }

    /** Where the last of them is; None where they are fewer. */
    def last: Option[Place] = if (rows >= wanted) Some(places.head._1) else None
  }

  /**
   * How many rows of a file are certain to come at a place or before it. Deletes may have taken away those that come first: what they
   * leave of these is certain to be at their place, and what they leave of all rows, at the last place or before it.
   */
  private def certainRows(file: Int): Seq[(Place, Long)] = {
    val nulls = summary.nulls(file)
    if (nulls < 0) Nil
    else {
      val values = latestValue(file)
      val (first, last) = if (order.nullsFirst) (nullsPlace, values) else (values, nullsPlace)
      val atFirst = deleted(file).liveOf(if (order.nullsFirst) nulls else summary.rows(file) - nulls)
      val afterFirst = deleted(file).liveOf(summary.rows(file)) - atFirst
      Seq(first -> atFirst, last -> afterFirst).filter(_._2 > 0)
    }
  }

  /** Where the first row of a file may be; None where it has none. */
  private def earliest(file: Int): Option[Place] = {
    val mayBeginWithNull = order.nullsFirst && summary.nulls(file) != 0
    if (summary.rows(file) == 0) None
    else if (mayBeginWithNull || summary.isAllNull(file)) Some(nullsPlace)
    else Some(bound(file, low = order.isAscending, BeforeValues))
  }

  private def latestValue(file: Int): Place = bound(file, low = !order.isAscending, AfterValues)

  private def bound(file: Int, low: Boolean, unknown: Int): Place =
    if (bounds.has(file, low)) Place(AmongValues, bounds.ends(low), file)
    else Place(unknown)

  private val inOrder: Ordering[Place] = new Ordering[Place] {
    override def compare(a: Place, b: Place): Int =
      if (a.rank != b.rank || a.rank != AmongValues) Integer.compare(a.rank, b.rank)
      else {
        val ascending = a.values.compare(a.at, b.values, b.at)
        if (order.isAscending) ascending else -ascending
      }
  }
}

private object TopRows {
  private val NullsFirst = 0
  private val BeforeValues = 1
  private val AmongValues = 2
  private val AfterValues = 3
  private val NullsLast = 4

  /** A place in the order: that of a value, or one without. */
  private final case class Place(rank: Int, values: Values = Values.none, at: Int = 0)
}
