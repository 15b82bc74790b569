package org.metastore.spark.pruning

import java.util.{Arrays, BitSet}

import org.metastore.spark.statistics.columns.FileGroupStatistics

/** The data files that no condition has excluded so far, and the conditions that excluded the others. */
private[pruning] class Candidates(val length: Int) {

  /** For each file the mark of the condition that excluded it first, or a mark of [[FileMarks]]. */
  val skippedBy: Array[Int] = new Array[Int](length)
  Arrays.fill(skippedBy, FileMarks.Kept)

  /** The files that a look-up of single values excluded; bounds and counts excluded the other ones. */
  val skippedByValues: BitSet = new BitSet

  private var remaining = length

  final def count: Int = remaining

  /** The files that no condition has excluded. */
  final def survivors: BitSet = FileSets.where(length)(skippedBy(_) == FileMarks.Kept)

  /** Excludes a file, unless a condition has excluded it before. */
  final def exclude(file: Int, mark: Int): Unit = if (skippedBy(file) == FileMarks.Kept) {
    skippedBy(file) = mark
    remaining -= 1
  }

  /** Excludes some of the survivors by a look-up of single values. */
  final def excludeByValues(files: BitSet, mark: Int): Unit = {
    skippedByValues.or(files)
    files.stream.forEach(exclude(_, mark))
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

/** Evaluates conditions one by one on the statistics of files; once few files remain, on those alone. */
private[pruning] final class EvaluatedCandidates(all: Evaluation) extends Candidates(all.length) {
  private var evaluated: Option[Array[Int]] = None // None: every file
  private var evaluation = all

  /** Excludes the files in which no row matches the condition. Throws what the evaluation throws. */
  def narrow(condition: Condition, mark: Int): Unit = {
    val excluded = condition.noRowMatches(evaluation).stream
    evaluated match {
      case None =>
        excluded.forEach(exclude(_, mark))
      case Some(files) =>
        excluded.forEach(i => exclude(files(i), mark))
    }
    if (count <= evaluation.length / EvaluatedCandidates.Fewer) {
      val few = survivors.stream.toArray
      evaluated = Some(few)
      evaluation = all.among(few)
    }
  }
}

private object EvaluatedCandidates {
  private val Fewer = 8 // copying the bounds of some files costs about as much as comparing them
}
