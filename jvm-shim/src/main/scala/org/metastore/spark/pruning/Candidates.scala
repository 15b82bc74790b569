package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}

import org.metastore.spark.statistics.columns.FileGroupStatistics

/** The data files that nothing has excluded so far, and what excluded each of the others. */
private[pruning] class Candidates(val length: Int) {

  /** For each file the mark of what excluded it first, or [[FileMarks.Kept]]. */
  val skippedBy: Array[Int] = new Array[Int](length)
  Arrays.fill(skippedBy, FileMarks.Kept)

  private var remaining = length

  final def count: Int = remaining

  /** The files that are left. */
  final def survivors: BitSet = FileSets.where(length)(skippedBy(_) == FileMarks.Kept)

  /** Excludes a file that nothing has excluded yet. */
  final def exclude(file: Int, mark: Int): Unit = if (skippedBy(file) == FileMarks.Kept) {
    skippedBy(file) = mark
    remaining -= 1
  }

  /** Excludes the files of groups, by the mark of each group. */
  def excludeGroups(group: FileGroupStatistics, marks: Array[Int]): Unit = {
    var file = 0
    while (file < length) {
      val number = group.groupOf(file)
      if (number >= 0 && marks(number) != FileMarks.Kept) exclude(file, marks(number))
      file += 1
    }
  }
}

/** Files whose statistics are asked one condition after the other: once few are left, for these alone. */
private[pruning] final class EvaluatedCandidates(all: Evaluation) extends Candidates(all.length) {
  private var evaluated: Option[Array[Int]] = None // None: every file
  private var evaluation = all

  /** Excludes the files of which it is proven that no row makes the condition true. Throws what the evaluation throws. */
  def narrow(condition: Condition, mark: Int): Unit = {
    val proven = condition.noRowMatches(evaluation).stream
    evaluated match {
      case None =>
        proven.forEach(exclude(_, mark))
      case Some(files) =>
        proven.forEach(i => exclude(files(i), mark))
    }
    if (count <= evaluation.length / EvaluatedCandidates.Fewer) {
      val few = survivors.stream.toArray
      evaluated = Some(few)
      evaluation = all.among(few)
    }
  }
}

private object EvaluatedCandidates {
  private val Fewer = 8 // to pick bounds out costs about as much as to compare them
}
