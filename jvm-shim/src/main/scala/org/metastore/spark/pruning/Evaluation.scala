package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.columns.{ColumnSummary, FileGroupStatistics, FileSetStatistics}

/** The statistics that conditions are put to, of many files at once. */
private[pruning] final class Evaluation private (
    val length: Int,
    column: ColumnReference => Either[Reason, ColumnSummary],
    allowance: EvaluationAllowance) {

  private val summaries = mutable.Map.empty[ColumnReference, Either[Reason, ColumnSummary]]

  /** Over all files of a scan. */
  def this(files: FileSetStatistics, allowance: EvaluationAllowance) =
    this(files.files.length, use => files.column(use.key, use.dataType), allowance)

  /** Over groups of files, each as if it were one file. */
  def this(groups: FileGroupStatistics, allowance: EvaluationAllowance) =
    this(groups.length, use => groups.column(use.key, use.dataType), allowance)

  /** Over some of the files: the places in answers are those in `files`. */
  def among(files: Array[Int]): Evaluation =
    new Evaluation(files.length, summaryOf(_).map(_.at(files)), allowance)

  /** The column in all files; `Left` where nothing is known of it. */
  def summaryOf(use: ColumnReference): Either[Reason, ColumnSummary] =
    summaries.getOrElseUpdate(use, column(use))

  /** Raises where planning has taken too long. */
  def requireTime(): Unit = allowance.requireTime()

  def allFiles: BitSet = FileSets.all(length)

  /** The files where the column is NULL in no row. */
  def withoutNulls(use: ColumnReference): BitSet = where(use)((summary, i) => summary.nulls(i) == 0)

  /** The files where the column is NULL in every row. */
  def onlyNulls(use: ColumnReference): BitSet = whereKnown(use) { summary =>
    if (summary.boundsDecide) new BitSet // no file is
    else where(summary)(summary.isAllNull(_))
  }

  /** The files of whose statistics of a column a test is true. */
  def where(use: ColumnReference)(test: (ColumnSummary, Int) => Boolean): BitSet =
    whereKnown(use)(summary => where(summary)(test(summary, _)))

  /** What a column's statistics prove; nothing where there are none. */
  def whereKnown(use: ColumnReference)(prove: ColumnSummary => BitSet): BitSet =
    summaryOf(use).fold(_ => new BitSet, prove)

  def where(summary: ColumnSummary)(test: Int => Boolean): BitSet =
    FileSets.where(length)(i => summary.hasStatistics(i) && test(i))
}
