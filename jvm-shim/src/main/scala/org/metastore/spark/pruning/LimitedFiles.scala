package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}

import org.metastore.spark.reason.{Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileSetStatistics

/**
 * The files that a LIMIT leaves unread, as the other files hold enough rows.
 *
 * @param label  the name in EXPLAIN
 * @param reason the reason for each of the files
 */
final class LimitedFiles private (val dropped: BitSet, val label: String, val reason: Int => Reason)

object LimitedFiles {

  private def drop(files: BitSet, label: String)(reason: Int => Reason): Option[LimitedFiles] =
    Optional.when(!files.isEmpty)(new LimitedFiles(files, label, reason))

  /**
   * Drops files that a query need not read because the rows of other files are enough.
   *
   * @param survivors  files that are read without the LIMIT
   * @param excludable the survivors that their statistics may exclude
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

  /** Drops the files that hold none of the first rows in an order. */
  private def first(
      limit: Long,
      order: RowOrder,
      files: FileSetStatistics,
      candidates: BitSet,
      full: BitSet,
      deleted: Int => DeletedRows): Option[LimitedFiles] =
    files.column(order.column.key, order.column.dataType).toOption.flatMap { summary =>
      drop(new TopRows(limit, order, summary, deleted).beyond(candidates, full), "top-K") { file =>
        val statistic = "statistic" -> SummaryText.bounds(files, order.column, file)
        Reason(ReasonCode.SkippedByTopK, "limit" -> limit.toString, "order" -> order.toString, statistic)
      }
    }

  /**
   * The reason why an ORDER BY with a LIMIT drops no file.
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
    val code = files.column(order.column.key, order.column.dataType) match {
      case Right(summary) if new TopRows(limit, order, summary, deleted).isLimitReached(full) =>
        ReasonCode.TopKOverlap
      case _ => ReasonCode.TopKUnknown
    }
    Reason(code, "limit" -> limit.toString, "order" -> order.toString)
  }

  /**
   * Chooses few files that hold enough rows, and drops the others. None if the files that qualify have too
   * few rows, or if no file would be dropped.
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
    new FewestFiles(candidates, rows, path).choose(limit.max(1)).flatMap { chosen =>
      val dropped = survivors.clone.asInstanceOf[BitSet]
      for (file <- chosen) dropped.clear(file)
      val reason = Reason(ReasonCode.SkippedByLimit, "limit" -> limit.toString)
      drop(dropped, "LIMIT")(_ => reason)
    }
  }
}

/**
 * Chooses files by their number of rows. Paths decide between files with equal numbers: equal scans are to
 * read the same files, and may list them in different orders. Only these paths are compared: there may be a
 * million files.
 */
private final class FewestFiles(files: Array[Int], rows: Int => Long, path: Int => String) {
  private val ascending = files.map(rows)
  Arrays.sort(ascending)

  /** The largest files until one more is enough, then the smallest that is; None if all have too few rows. */
  def choose(limit: Long): Option[Array[Int]] = {
    val before = ascending.reverseIterator.scanLeft(0L)(_ + _)
    val large = before.takeWhile(_ < limit).size
    if (large > files.length) None
    else {
      val chosen = largest(large - 1)
      val chosenSet = new BitSet
      for (file <- chosen) chosenSet.set(file)
      val missing = limit - chosen.map(rows).sum
      for (smallest <- ascending.find(_ >= missing))
        yield filesWith(smallest).filterNot(chosenSet.get(_)).minBy(path) +: chosen
    }
  }

  private def largest(count: Int): Array[Int] = if (count == 0) Array.emptyIntArray
  else {
    val least = ascending(files.length - count)
    val larger = files.filter(rows(_) > least)
    larger ++ filesWith(least).sortBy(path).takeRight(count - larger.length)
  }

  private def filesWith(count: Long): Array[Int] = files.filter(rows(_) == count)
}
