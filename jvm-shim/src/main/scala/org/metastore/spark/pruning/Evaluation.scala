package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{ColumnSummary, FileGroupStatistics, FileSetStatistics}

/** The statistics of many files, on which conditions are evaluated. */
private[pruning] final class Evaluation private (
    val length: Int,
    load: ColumnReference => Either[Reason, ColumnSummary],
    allowance: EvaluationAllowance) {

  private val summaries = mutable.Map.empty[ColumnReference, Either[Reason, ColumnSummary]]

  /** Over all files of a scan. */
  def this(files: FileSetStatistics, allowance: EvaluationAllowance) =
    this(files.files.length, column => files.column(column.key, column.dataType), allowance)

  /** Over groups of files, each as if it were one file. */
  def this(groups: FileGroupStatistics, allowance: EvaluationAllowance) =
    this(groups.length, column => groups.column(column.key, column.dataType), allowance)

  /** Over some of the files; answers number them by their index in `files`. */
  def among(files: Array[Int]): Evaluation =
    new Evaluation(files.length, summaryOf(_).map(_.at(files)), allowance)

  /** The statistics of a column in all files, or the reason why it has none. */
  def summaryOf(column: ColumnReference): Either[Reason, ColumnSummary] =
    summaries.getOrElseUpdate(column, load(column))

  /** Raises an error if planning has taken too long. */
  def requireTime(): Unit = allowance.requireTime()

  def allFiles: BitSet = FileSets.all(length)

  /** The files where the column is NULL in no row. */
  def withoutNulls(column: ColumnReference): BitSet = where(column)((summary, i) => summary.nulls(i) == 0)

  /** The files where the column is NULL in every row. */
  def onlyNulls(column: ColumnReference): BitSet = whereKnown(column) { summary =>
    if (summary.boundsDecide) new BitSet // no file has only NULLs
    else where(summary)(summary.isAllNull(_))
  }

  /** The files with statistics of a column that pass a test. */
  def where(column: ColumnReference)(test: (ColumnSummary, Int) => Boolean): BitSet =
    whereKnown(column)(summary => where(summary)(test(summary, _)))

  /** The files that `prove` finds by the statistics of a column; none if it has no statistics. */
  def whereKnown(column: ColumnReference)(prove: ColumnSummary => BitSet): BitSet =
    summaryOf(column).fold(_ => new BitSet, prove)

  def where(summary: ColumnSummary)(test: Int => Boolean): BitSet =
    FileSets.where(length)(i => summary.hasStatistics(i) && test(i))
}
