package org.metastore.spark.pruning

import java.util.BitSet

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileSetStatistics

/**
 * The files that a LIMIT leaves unread: the others hold the rows that it asks for.
 *
 * @param label what EXPLAIN calls it
 * @param why   the reason of each of them
 */
final class LimitedFiles private (val dropped: BitSet, val label: String, val why: Int => Reason)

object LimitedFiles {

  private def of(dropped: BitSet, label: String)(why: Int => Reason): Option[LimitedFiles] =
    if (dropped.isEmpty) None else Some(new LimitedFiles(dropped, label, why))

  /** Leaves out the files that hold none of the first rows in an order; the parameters are those of `TopRows`. */
  private[spark] def first(
      limit: Long, order: RowOrder, files: FileSetStatistics, candidates: BitSet, full: BitSet): Option[LimitedFiles] =
    files.column(order.column.key, order.column.dataType).toOption.flatMap { summary =>
      of(new TopRows(limit, order, summary).beyond(candidates, full), "top-K") { file =>
        val statistic = "statistic" -> SummaryText.of(files, order.column, file)
        Reason(ReasonCode.SkippedByTopK, "limit" -> limit.toString, "order" -> order.toString, statistic)
      }
    }

  /**
   * Chooses few files that hold enough rows; None where the files that qualify do not hold them, or nothing would be saved.
   *
   * @param survivors files that are read without the LIMIT
   * @param full      files all of whose rows are live and match
   * @param rows      rows of each of these
   */
  def choose(limit: Long, survivors: BitSet, full: BitSet, rows: Int => Long, path: Int => String): Option[LimitedFiles] = {
    val candidates = FileSets.both(survivors, full).stream.toArray.toIndexedSeq.filter(rows(_) > 0)
    // Equal scans may list their files in different orders, and are to read the same ones.
    val smallestFirst = candidates.sortBy(file => (rows(file), path(file)))
    fewest(limit, smallestFirst, rows).flatMap { chosen =>
      val dropped = survivors.clone.asInstanceOf[BitSet]
      chosen.foreach(dropped.clear(_))
      val why = Reason(ReasonCode.SkippedByLimit, "limit" -> limit.toString)
      of(dropped, "LIMIT")(_ => why)
    }
  }

  /** The largest files until one more is enough, then the smallest that is. */
  private def fewest(limit: Long, smallestFirst: IndexedSeq[Int], rows: Int => Long): Option[Seq[Int]] = {
    val before = smallestFirst.reverseIterator.scanLeft(0L)(_ + rows(_))
    val large = before.takeWhile(sum => sum < limit).size
    if (large > smallestFirst.size) None
    else {
      val most = smallestFirst.takeRight(large - 1)
      val missing = limit - most.map(rows).sum
      smallestFirst.dropRight(large - 1).find(rows(_) >= missing).map(_ +: most)
    }
  }
}
