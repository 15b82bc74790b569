package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.FileSetStatistics

/** What was decided for every file of a scan. */
trait Verdicts {

  def length: Int

  /** False only where no row of the file can match the filter. */
  def isKept(file: Int): Boolean

  def keptCount: Int

  /** Index of the conjunct that excludes the file, the last of several; -1 where it is kept, -2 where it has no rows. */
  def skippedBy(file: Int): Int

  /** Why the file is kept or skipped, naming conjunct and statistic. Built when asked. */
  def reason(file: Int): Reason

  /** Why conjuncts could not be used, by index of the conjunct; absent where they were. */
  def unusedConjuncts: Map[Int, Reason]
}

/** The conjuncts of a scan, compiled once and usable for any list of files. Immutable and thread-safe. */
trait PruningFilter {

  /** The conjuncts as compiled; indices in [[Verdicts]] refer to them. */
  def conjuncts: IndexedSeq[Expression]

  /** The columns whose statistics decide. Empty: nothing can be pruned by this filter. */
  def columns: Seq[ColumnReference]

  /** Keys and types of these columns, as statistics are asked for them. */
  final def columnKeys: Seq[(String, DataType)] = columns.map(use => use.key -> use.dataType)

  /**
   * Finds the files that hold no matching row. Three-valued: a file is skipped only when it is proven that no row can match;
   * all else, every doubt and every exception included, keeps it. Never throws.
   */
  def evaluate(files: FileSetStatistics): Verdicts

  /** The files all of whose physical rows match every conjunct: a proof of its own, no negation of the first. Never throws. */
  def allRowsMatch(files: FileSetStatistics): BitSet
}
