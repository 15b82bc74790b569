package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._
import org.metastore.spark.store.SummaryRow
import org.metastore.spark.tables.Leaf

/** `metastore.columns(table [, column])`: one row a data file and column. */
object ColumnsFunction extends StatisticsFunction {
  override val name = "columns"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true), Argument("column", required = false))
  override val schema: StructType = StructType.fromDDL(
    "path STRING, column_name STRING, min STRING, max STRING, rows BIGINT, null_count BIGINT, nan_count BIGINT, distinct BIGINT, " +
      "frequencies_kept STRING")
  override val meaning = "Statistics of columns in each data file, deleted rows included"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = rowsWithStatistics(session, call).map(_._1)

  override def rowsWithStatistics(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])] =
    known(session, call, None, _ => true, _ => true)

  /**
   * The rows of some columns and data files alone.
   *
   * @param file    path of the one data file to show, or its last part
   * @param columns which columns are wanted, by name as it is shown
   * @param files   which data files are wanted, by path
   */
  def known(
      session: SparkSession, call: Arguments, file: Option[String], columns: String => Boolean,
      files: String => Boolean): Seq[(InternalRow, Option[SummaryRow])] = {
    val analyzed = TableContext.of(session, call.text("table"))
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val leaves = analyzed.table.leaves(current)
    val wanted = call.optional("column").fold[Seq[Leaf]](leaves)(column => Seq(analyzed.leaf(session, column, leaves)))
      .filter(leaf => columns(leaf.name))
    val byKey = wanted.map(leaf => leaf.key -> leaf).toMap
    val level = new FileLevel(analyzed, snapshot)
    val shown = file.fold(level.files.filter(row => files(row.path)))(path => IndexedSeq(level.find(path)).filter(row => files(row.path)))
    level.columns(shown, wanted.map(_.key)).map { case FileColumnSummary(file, column, row) =>
      val leaf = byKey(column.key)
      val text = ValueText.of(column.dataType, leaf.dataType)
      ResultRow.row(file.path, leaf.name, text.bound(row.lo, row.loExact), text.bound(row.hi, row.hiExact), row.rows, row.nulls, row.nans,
        row.distinct, row.frequencies) -> Some(row)
    }
  }
}
