package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import org.metastore.spark.statistics.columns.{FileGroupStatistics, FileSetStatistics}

/** The data files that nothing has excluded so far, and what excluded each of the others. */
private[pruning] final class Candidates(all: Evaluation) {
  import Candidates._

  /** For each file the mark of what excluded it first, or [[FileVerdicts.Kept]]. */
  val skippedBy: Array[Int] = new Array[Int](all.length)
  java.util.Arrays.fill(skippedBy, FileVerdicts.Kept)

  private var remaining = all.length
  private var asked: Option[Array[Int]] = None // None: every file
  private var evaluation = all

  def count: Int = remaining

  /** Excludes the files of which it is proven that no row makes the condition true. Throws what the evaluation throws. */
  def narrow(condition: Condition, mark: Int): Unit = if (remaining > 0) {
    val proven = evaluation.noRowMatches(condition)
    if (!evaluation.isNone(proven)) {
      asked match {
        case None => excludeByPlace(proven, mark)
        case Some(files) => excludeAll(Evaluation.select(files, proven), mark)
      }
      if (remaining <= proven.length / Fewer) {
        val few = survivors
        asked = Some(few)
        evaluation = all.among(few)
      }
    }
  }

  /** Excludes those of some files that nothing has excluded yet. */
  def excludeAll(files: Array[Int], mark: Int): Unit = {
    var i = 0
    while (i < files.length) {
      exclude(files(i), mark)
      i += 1
    }
  }

  /** Excludes the files that have no rows. */
  def excludeEmpty(rows: Array[Long]): Unit = {
    var file = 0
    while (file < rows.length) {
      if (rows(file) == 0) exclude(file, FileVerdicts.Empty)
      file += 1
    }
  }

  /** The files that are left, in their order. */
  def survivors: Array[Int] = {
    val files = new Array[Int](remaining)
    var (found, file) = (0, 0)
    while (found < remaining) {
      if (skippedBy(file) == FileVerdicts.Kept) {
        files(found) = file
        found += 1
      }
      file += 1
    }
    files
  }

  private def excludeByPlace(proven: Array[Boolean], mark: Int): Unit = {
    var file = 0
    while (file < proven.length) {
      if (proven(file)) exclude(file, mark)
      file += 1
    }
  }

  private def exclude(file: Int, mark: Int): Unit = if (skippedBy(file) == FileVerdicts.Kept) {
    skippedBy(file) = mark
    remaining -= 1
  }
}

private object Candidates {
  private val Fewer = 8 // to pick bounds out costs about as much as to compare them
}

/** The files of a scan after whole groups of them were excluded. */
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
