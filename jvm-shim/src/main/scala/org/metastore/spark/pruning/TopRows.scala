package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.metastore.spark.statistics.columns.ColumnSummary
import org.metastore.spark.statistics.objects.Values

/**
 * Finds the files that hold none of the first rows in an order: enough rows that certainly match come
 * strictly before every row of such a file. Rows that are equal in the order may come in any sequence.
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
  private val nullsPosition = Position(if (order.nullsFirst) NullsFirst else NullsLast)

  /**
   * The files that need not be read.
   *
   * @param candidates files whose rows lie within their bounds
   * @param full       files all of whose live rows match
   */
  def beyond(candidates: BitSet, full: BitSet): BitSet = lastPosition(full).fold(new BitSet) { last =>
    FileSets.where(summary.length) { file =>
      candidates.get(file) && summary.hasStatistics(file) && isBeyond(file, last)
    }
  }

  /** Whether every row of a file comes after a position; false if it has no rows. */
  private def isBeyond(file: Int, last: Position): Boolean =
    earliest(file).exists(inOrder.compare(_, last) > 0)

  /** Whether some position has enough rows that certainly come by it; `full` as in `beyond`. */
  def isLimitReached(full: BitSet): Boolean = lastPosition(full).isDefined

  /** The first position by which enough rows certainly come. */
  private def lastPosition(full: BitSet): Option[Position] = {
    val first = new FirstRows(limit)
    full.stream.filter(summary.hasStatistics(_)).forEach(file =>
      for ((position, rows) <- certainRows(file)) first.add(position, rows))
    first.last
  }

  /** Keeps the first `number` of the added rows: few positions, even for a million files. */
  private final class FirstRows(number: Long) {
    private val positions =
      mutable.PriorityQueue.empty[(Position, Long)](Ordering.by((_: (Position, Long))._1)(inOrder))
    private var rows = 0L

    def add(position: Position, count: Long): Unit =
      if (rows < number || inOrder.compare(position, positions.head._1) < 0) {
        positions += position -> count
        rows += count
        while (rows - positions.head._2 >= number) rows -= positions.dequeue()._2
      }

    /** The position of the last of these rows; None if there are fewer. */
    def last: Option[Position] = if (rows >= number) Some(positions.head._1) else None
  }

  /**
   * The positions by which rows of a file certainly come, each with the number of rows.
   *
   * Any of the rows may be the deleted ones. Take the rows NULL, NULL and 5, of which one is deleted, with
   * NULLS FIRST: one NULL certainly remains. Two rows remain in all, so that the second one comes by 5, the
   * greatest value.
   */
  private def certainRows(file: Int): Seq[(Position, Long)] = {
    val nulls = summary.nulls(file)
    if (nulls < 0) Nil
    else {
      val values = latestValue(file)
      val (first, last) = if (order.nullsFirst) (nullsPosition, values) else (values, nullsPosition)
      val atFirst = deleted(file).liveOf(if (order.nullsFirst) nulls else summary.rows(file) - nulls)
      val afterFirst = deleted(file).liveOf(summary.rows(file)) - atFirst
      Seq(first -> atFirst, last -> afterFirst).filter(_._2 > 0)
    }
  }

  /** The first position that a row of a file may have; None if it has no rows. */
  private def earliest(file: Int): Option[Position] = {
    val mayBeginWithNull = order.nullsFirst && summary.nulls(file) != 0
    if (summary.rows(file) == 0) None
    else if (mayBeginWithNull || summary.isAllNull(file)) Some(nullsPosition)
    else Some(bound(file, low = order.isAscending, BeforeValues))
  }

  private def latestValue(file: Int): Position = bound(file, low = !order.isAscending, AfterValues)

  private def bound(file: Int, low: Boolean, unknown: Int): Position =
    if (bounds.has(file, low)) Position(AmongValues, bounds.ends(low), file)
    else Position(unknown)

  private val inOrder: Ordering[Position] = new Ordering[Position] {
    override def compare(a: Position, b: Position): Int =
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

  /** A position in the order: that of a value, or one before or after all values. */
  private final case class Position(rank: Int, values: Values = Values.none, at: Int = 0)
}
