package org.metastore.spark.pruning

import java.util.BitSet

/** The files that a LIMIT leaves unread: the others hold as many rows as it asks for, and every one of them matches. */
final case class LimitedFiles(limit: Long, dropped: BitSet)

object LimitedFiles {

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
    fewest(limit, smallestFirst, rows).map { chosen =>
      val dropped = survivors.clone.asInstanceOf[BitSet]
      chosen.foreach(dropped.clear(_))
      LimitedFiles(limit, dropped)
    }.filterNot(_.dropped.isEmpty)
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
