package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}

import org.metastore.spark.reason.{Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileSetStatistics

/**
 * The files that a LIMIT leaves unread, as the other files hold enough rows.
 *
 * @param label the name in EXPLAIN
 * @param why   the reason for each of the files
 */
final class LimitedFiles private (val dropped: BitSet, val label: String, val why: Int => Reason)

object LimitedFiles {

  private def leaveOut(dropped: BitSet, label: String)(why: Int => Reason): Option[LimitedFiles] =
    Optional.when(!dropped.isEmpty)(new LimitedFiles(dropped, label, why))

  /**
   * The files that are left unread because the wanted rows are in other files.
   *
   * @param survivors  files that are read without the LIMIT
   * @param excludable those of them that their statistics may exclude
   * @param full       files all of whose live rows match
   * @param deleted    deleted rows of each of these
   */
  private[spark] def by(
      wanted: WantedRows,
      files: FileSetStatistics,
      survivors: BitSet,
      excludable: BitSet,
      full: BitSet,
      deleted: Int => DeletedRows): Option[LimitedFiles] =
    wanted.order match {
      case None => choose(
          wanted.limit,
          survivors,
          full,
          file => deleted(file).liveOf(files.rows(file)),
          files.files.paths(_))
      case Some(order) =>
        first(wanted.limit, order, files, excludable, full, deleted)
    }

  /** Leaves out the files that hold none of the first rows in an order; the parameters are those of `TopRows`. */
  private def first(
      limit: Long,
      order: RowOrder,
      files: FileSetStatistics,
      candidates: BitSet,
      full: BitSet,
      deleted: Int => DeletedRows): Option[LimitedFiles] =
    files.column(order.column.key, order.column.dataType).toOption.flatMap { summary =>
      leaveOut(new TopRows(limit, order, summary, deleted).beyond(candidates, full), "top-K") { file =>
        val statistic = "statistic" -> SummaryText.bounds(files, order.column, file)
        Reason(ReasonCode.SkippedByTopK, "limit" -> limit.toString, "order" -> order.toString, statistic)
      }
    }

  /**
   * Why an ORDER BY with a LIMIT leaves no file out.
   *
   * @param full    files all of whose live rows match
   * @param deleted deleted rows of each of these
   */
  private[spark] def whyNone(
      limit: Long,
      order: RowOrder,
      files: FileSetStatistics,
      full: BitSet,
      deleted: Int => DeletedRows): Reason = {
    val isLimitReached =
      files.column(
        order.column.key,
        order.column.dataType).exists(new TopRows(limit, order, _, deleted).isLimitReached(full))
    val code = if (isLimitReached) ReasonCode.TopKOverlap else ReasonCode.TopKUnknown
    Reason(code, "limit" -> limit.toString, "order" -> order.toString)
  }

  /**
   * Chooses few files that hold enough rows; None where the files that qualify do not hold them, or nothing would be saved.
   *
   * @param survivors files that are read without the LIMIT
   * @param full      files all of whose live rows match
   * @param rows      rows of each of these that are certain to be live
   */
  def choose(
      limit: Long,
      survivors: BitSet,
      full: BitSet,
      rows: Int => Long,
      path: Int => String): Option[LimitedFiles] = {
    val candidates = FileSets.both(survivors, full).stream.filter(rows(_) > 0).toArray
    new FewestFiles(candidates, rows, path).holding(limit.max(1)).flatMap { chosen =>
      val dropped = survivors.clone.asInstanceOf[BitSet]
      for (file <- chosen) dropped.clear(file)
      val why = Reason(ReasonCode.SkippedByLimit, "limit" -> limit.toString)
      leaveOut(dropped, "LIMIT")(_ => why)
    }
  }
}

/**
 * Chooses from files by their rows, and from equal ones by their paths: equal scans may list their files in different orders,
 * and are to read the same ones. Paths of other files are not compared: there may be a million.
 */
private final class FewestFiles(files: Array[Int], rows: Int => Long, path: Int => String) {
  private val ascending = files.map(rows)
  Arrays.sort(ascending)

  /** The largest files until one more is enough, then the smallest that is; None where all are not enough. */
  def holding(limit: Long): Option[Array[Int]] = {
    val before = ascending.reverseIterator.scanLeft(0L)(_ + _)
    val large = before.takeWhile(_ < limit).size
    if (large > files.length) None
    else {
      val most = largest(large - 1)
      val taken = new BitSet
      for (file <- most) taken.set(file)
      val missing = limit - most.map(rows).sum
      ascending.find(_ >= missing).map(sized(_).filterNot(taken.get(_)).minBy(path) +: most)
    }
  }

  private def largest(count: Int): Array[Int] = if (count == 0) Array.emptyIntArray
  else {
    val least = ascending(files.length - count)
    val larger = files.filter(rows(_) > least)
    larger ++ sized(least).sortBy(path).takeRight(count - larger.length)
  }

  private def sized(count: Long): Array[Int] = files.filter(rows(_) == count)
}
