package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{ColumnSummary, FileSetStatistics, NoBounds}

/** An aggregate function that is computed from the statistics of files: for each file exactly, or not at all. */
trait FileMeasure {

  /** Keys and types of the columns that it reads. */
  def columns: Seq[(String, DataType)]

  /**
   * Computes the measure of files.
   *
   * @param among   the files whose measure is wanted
   * @param deleted the rows that deletes take away from each of these
   */
  def compute(files: FileSetStatistics, among: BitSet, deleted: Int => DeletedRows): MeasuredFiles
}

/** A measure that is known of files without deletes alone: which rows are deleted is unknown. */
private[pruning] trait WholeFileMeasure extends FileMeasure {

  /** Computes the measure of files without deletes. */
  def computeWhole(files: FileSetStatistics, among: BitSet): MeasuredFiles

  override final def compute(
      files: FileSetStatistics,
      among: BitSet,
      deleted: Int => DeletedRows): MeasuredFiles = {
    val whole = FileSets.where(files.files.length)(file => among.get(file) && deleted(file).isZero)
    new WholeFiles(whole, computeWhole(files, whole))
  }
}

/** A measure of files, which is not known of those with deletes. */
private final class WholeFiles(whole: BitSet, measured: MeasuredFiles) extends MeasuredFiles {
  override def isKnown(file: Int): Boolean = whole.get(file) && measured.isKnown(file)
  override def total(files: BitSet): Option[Any] = measured.total(files)
  override def parts(files: BitSet, others: Map[Int, Long]): Option[Seq[Any]] = measured.parts(files, others)
}

/** A measure of the files of one scan. */
private[spark] trait MeasuredFiles {

  /** Whether the file's statistics say exactly what its rows add to the measure. */
  def isKnown(file: Int): Boolean

  /** The measure of all rows of files that are known, as Catalyst's internal value; None where it would not be exact. */
  def total(files: BitSet): Option[Any]

  /**
   * The measure in the parts of `MergeableFunction`, to be merged with those of files that are read. None where the measure of all
   * rows would not be exact.
   *
   * @param others how many rows each of the files has that are read; -1: not known
   */
  def parts(files: BitSet, others: Map[Int, Long]): Option[Seq[Any]] = total(files).map(Seq(_))
}

/** A partial COUNT(DISTINCT), to be merged with others: the set of values, as Catalyst's internal ones. */
final case class DifferentValues(values: Seq[Any])

private[pruning] object FileMeasure {

  def measured(files: FileSetStatistics, column: ColumnReference)(
      measure: ColumnSummary => MeasuredFiles): MeasuredFiles = {
    val summary = files.column(column.key, column.dataType)
    measure(summary.getOrElse(unknown(column, files.files.length)))
  }

  // A column without statistics: the measure of no files is still that of its function.
  private def unknown(column: ColumnReference, length: Int): ColumnSummary = new ColumnSummary(
    column.key,
    column.dataType,
    new Array[Boolean](length),
    new Array[Long](length),
    new Array[Long](length),
    new Array[Long](length),
    NoBounds,
    new BitSet)

  /** Whether what the rows of a file add to a measure of its values is known: nothing, or what `ofValues` says. */
  def isKnown(summary: ColumnSummary, file: Int)(ofValues: => Boolean): Boolean =
    if (summary.hasNullCount(file)) summary.isAllNull(file) || ofValues
    else false
}
