package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.FileSetStatistics

/** The decisions on the files of a scan. */
trait Verdicts {

  def length: Int

  /** False only if no row of the file can match the filter. */
  def isKept(file: Int): Boolean

  def keptCount: Int

  /** The index of the last conjunct that excludes the file; -1 if it is kept, -2 if it has no rows. */
  def skippedBy(file: Int): Int

  /** The reason why the file is kept or skipped, with conjunct and statistic. Built on demand. */
  def reason(file: Int): Reason

  /** The reasons why conjuncts could not be used, by the index of the conjunct. */
  def unusedConjuncts: Map[Int, Reason]
}

/** The conjuncts of a scan, compiled once and usable for any list of files. Immutable and thread-safe. */
trait PruningFilter {

  /** The conjuncts as compiled; indices in [[Verdicts]] refer to them. */
  def conjuncts: IndexedSeq[Expression]

  /** The columns whose statistics decide; without any, the filter skips no file. */
  def columns: Seq[ColumnReference]

  /** The keys and types of these columns. */
  final def columnKeys: Seq[(String, DataType)] = columns.map(column => column.key -> column.dataType)

  /**
   * Finds the files that hold no matching row. A file is skipped only if it is proven that no row can match;
   * any doubt, and any exception, keeps it. Never throws.
   */
  def evaluate(files: FileSetStatistics): Verdicts

  /** Finds the files in which all physical rows match every conjunct, by rules of its own. Never throws. */
  def allRowsMatch(files: FileSetStatistics): BitSet
}
