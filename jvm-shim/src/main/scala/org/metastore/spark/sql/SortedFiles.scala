package org.metastore.spark.sql

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSummary, FileSetStatistics}
import org.metastore.spark.statistics.values.{ColumnHistogram, SortedColumn, SortedRun}
import org.metastore.spark.tables.DataFile

/**
 * The statistics of the data files of a partition if its rows were sorted into as many files of equally many
 * rows.
 *
 * @param columns       the columns that the rows are sorted by, each with its histogram
 * @param statistics    the statistics of the files as they are
 * @param isPartitioned whether partitions are not the whole table
 */
private[sql] final class SortedFiles(
    columns: List[((String, DataType), ColumnHistogram)],
    statistics: FileSetStatistics,
    live: IndexedSeq[DataFile],
    isPartitioned: Boolean) {

  /** The runs of each file's rows by the first column, and within it by the next columns. */
  def runs(files: Array[Int]): Seq[List[SortedRun]] = {
    val sorted = sort(files)
    val rows = liveRows(files)
    def at(file: Int): Long = (BigInt(rows) * file / files.length).toLong
    files.indices.map(file => runsOf(sorted, at(file), at(file + 1), rows))
  }

  /** Counts the files that would have a value of the first column between their bounds. */
  def filesWith(files: Array[Int]): Any => Int = {
    val sorted = sort(files).head
    val rows = liveRows(files)
    value => sorted.filesWith(value, files.length, rows)
  }

  private def sort(files: Array[Int]): List[SortedColumn] =
    for ((column, histogram) <- columns)
      yield new SortedColumn(if (isPartitioned) partitionHistogram(column, histogram, files) else histogram)

  private def runsOf(sorted: List[SortedColumn], from: Long, until: Long, rows: Long): List[SortedRun] =
    sorted match {
      case first :: next =>
        val run = first.run(from, until, rows)
        val inside = run.inside match {
          case Some((begin, end, all)) => runsOf(next, begin, end, all)
          case None => Nil
        }
        run :: inside
      case Nil => Nil
    }

  private def liveRows(files: Array[Int]): Long = {
    var sum = 0L
    for (file <- files) {
      val rows = math.max(0L, live(file).rows.getOrElse(statistics.rows(file)))
      val deleted = live(file).deletedRows.getOrElse(0L)
      sum += math.max(0L, rows - deleted)
    }
    sum
  }

  /**
   * The table's values between the bounds of the files of a partition; all of them where bounds are unknown.
   */
  private def partitionHistogram(
      column: (String, DataType),
      table: ColumnHistogram,
      files: Array[Int]): ColumnHistogram = statistics.column(column._1, column._2) match {
    case Right(summary) if files.forall(file => summary.hasStatistics(file) && summary.nulls(file) >= 0) =>
      between(summary, table, files)
    case _ => table
  }

  private def between(
      summary: ColumnSummary,
      table: ColumnHistogram,
      files: Array[Int]): ColumnHistogram = {
    val filled = files.filter(file => summary.nulls(file) < summary.rows(file))
    val los = filled.flatMap(CatalystValue.lo(summary, _))
    val his = filled.flatMap(CatalystValue.hiNumber(summary, _))
    val nulls = files.map(summary.nulls(_)).sum.toDouble
    val nans = files.map(file => math.max(0L, summary.nans(file))).sum.toDouble
    def placed(value: Any) = table.axis.at(value) -> value
    if (los.length < filled.length || his.length < filled.length) table
    else if (filled.isEmpty) table.withBuckets(Array.empty, nulls, nans)
    else table.between(los.map(placed).minBy(_._1), his.map(placed).maxBy(_._1), nulls, nans)
  }
}

private[sql] object SortedFiles {

  /** The ordinals of the data files of each partition. */
  def partitions(files: IndexedSeq[DataFile]): Seq[Array[Int]] = {
    val ordinals = files.indices.groupBy(files(_).partition)
    ordinals.values.map(_.toArray).toSeq
  }
}
