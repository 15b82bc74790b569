package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{ColumnSummary, FileSetStatistics, NoBounds}

/** An aggregate function computed from the statistics of files. A file's part is exact, or unknown. */
trait FileMeasure {

  /** The keys and types of the columns that the function reads. */
  def columns: Seq[(String, DataType)]

  /**
   * Computes the measure of files.
   *
   * @param selected the files to measure
   * @param deleted  the number of deleted rows of each of these
   */
  def compute(files: FileSetStatistics, selected: BitSet, deleted: Int => DeletedRows): MeasuredFiles
}

/** A measure that is known only for files without deletes: it would depend on which rows are deleted. */
private[pruning] trait WholeFileMeasure extends FileMeasure {

  /** Computes the measure of files without deletes. */
  def computeWhole(files: FileSetStatistics, selected: BitSet): MeasuredFiles

  override final def compute(
      files: FileSetStatistics,
      selected: BitSet,
      deleted: Int => DeletedRows): MeasuredFiles = {
    val undeleted = FileSets.where(files.files.length)(file => selected.get(file) && deleted(file).isZero)
    new WholeFiles(undeleted, computeWhole(files, undeleted))
  }
}

/** A measure of files that is unknown for files with deletes. */
private final class WholeFiles(undeleted: BitSet, measured: MeasuredFiles) extends MeasuredFiles {
  override def isKnown(file: Int): Boolean = undeleted.get(file) && measured.isKnown(file)
  override def total(files: BitSet): Option[Any] = measured.total(files)
  override def parts(files: BitSet, rowsRead: Map[Int, Long]): Option[Seq[Any]] =
    measured.parts(files, rowsRead)
}

/** A measure of the files of one scan. */
private[spark] trait MeasuredFiles {

  /** Whether the file's part of the measure follows exactly from its statistics. */
  def isKnown(file: Int): Boolean

  /** The measure of files with known parts, as Catalyst's internal value; None if it would not be exact. */
  def total(files: BitSet): Option[Any]

  /**
   * The measure in the parts of `MergeableFunction`, to be merged with those of files that are read. None if
   * the measure of all files would not be exact.
   *
   * @param rowsRead the number of rows of each file that is read; -1 if unknown
   */
  def parts(files: BitSet, rowsRead: Map[Int, Long]): Option[Seq[Any]] = total(files).map(Seq(_))
}

/** The part of a COUNT(DISTINCT) that is merged: the different values, as Catalyst's internal values. */
final case class DifferentValues(values: Seq[Any])

private[pruning] object FileMeasure {

  def measured(files: FileSetStatistics, column: ColumnReference)(
      measure: ColumnSummary => MeasuredFiles): MeasuredFiles = {
    val summary = files.column(column.key, column.dataType)
    measure(summary.getOrElse(unknown(column, files.files.length)))
  }

  // A column without statistics: no file's part is known, and the measure of no files is.
  private def unknown(column: ColumnReference, length: Int): ColumnSummary = new ColumnSummary(
    column.key,
    column.dataType,
    new Array[Boolean](length),
    new Array[Long](length),
    new Array[Long](length),
    new Array[Long](length),
    NoBounds,
    new BitSet)

  /** Whether a file's part of a measure of its values is known: it has only NULLs, or `areValuesKnown`. */
  def isKnown(summary: ColumnSummary, file: Int)(areValuesKnown: => Boolean): Boolean =
    if (summary.hasNullCount(file)) summary.isAllNull(file) || areValuesKnown
    else false
}
