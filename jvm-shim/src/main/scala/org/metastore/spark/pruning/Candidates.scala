package org.metastore.spark.pruning

/**
 * The data files that nothing has excluded so far, and what excluded each of the others. Once few are left, conditions are
 * evaluated for these alone.
 *
 * @param all evaluates over every file
 */
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
