package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import org.metastore.spark.store.{FileGroupStatistics, FileSetStatistics}

/**
 * The files of a scan after whole groups of them were excluded.
 *
 * @param judged groups, each with the marks of what excludes them
 */
private[pruning] final class GroupCandidates(files: FileSetStatistics, judged: () => Seq[(FileGroupStatistics, Array[Int])]) {
  import GroupCandidates._

  private val length = files.files.length
  private val skippedBy = new Array[Int](length)
  java.util.Arrays.fill(skippedBy, FileVerdicts.Kept)

  /** The files that are left, in their order, where they are few; else all are judged one by one. */
  val survivors: Option[Array[Int]] =
    try {
      val groups = judged()
      groups.foreach { case (group, marks) => exclude(group, marks) }
      if (groups.isEmpty) None else kept()
    } catch {
      case NonFatal(e) =>
        log.warn("Files are judged one by one", e)
        None
    }

  /** The marks of all files, from those of the files that were left. */
  def completeMarks(few: Array[Int], marks: Array[Int]): Array[Int] = {
    var i = 0
    while (i < few.length) {
      skippedBy(few(i)) = marks(i)
      i += 1
    }
    skippedBy
  }

  private def exclude(group: FileGroupStatistics, marks: Array[Int]): Unit = {
    var file = 0
    while (file < length) {
      val place = group.of(file)
      if (place >= 0 && marks(place) != FileVerdicts.Kept && skippedBy(file) == FileVerdicts.Kept) skippedBy(file) = marks(place)
      file += 1
    }
  }

  private def kept(): Option[Array[Int]] = {
    val places = new Array[Int](length / Fewer)
    var (found, file) = (0, 0)
    while (file < length && found <= places.length) {
      if (skippedBy(file) == FileVerdicts.Kept) {
        if (found < places.length) places(found) = file
        found += 1
      }
      file += 1
    }
    if (found > places.length) None else Some(java.util.Arrays.copyOf(places, found))
  }
}

private object GroupCandidates {
  private val Fewer = 16 // of more than that share, what whole columns tell is worth keeping for later queries
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")
}
