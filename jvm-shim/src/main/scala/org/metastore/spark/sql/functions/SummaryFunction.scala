package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._
import org.metastore.spark.store.{Snapshot, SummaryRow, ValueRow}
import org.metastore.spark.tables.Leaf

/** `metastore.summary(table [, file] [, at])`: one row a column, of the table or of one of its data files. */
object SummaryFunction extends TypedFunction {
  override val name = "summary"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true), Argument("file", required = false), Argument("at", required = false))
  override val schema: StructType = StructType.fromDDL(
    """column_name STRING, column_type STRING, min STRING, max STRING, approx_unique BIGINT, avg DOUBLE, std DOUBLE, q25 STRING,
      |q50 STRING, q75 STRING, count BIGINT, null_percentage DOUBLE, null_count BIGINT, nan_count BIGINT, avg_len DOUBLE,
      |max_len BIGINT, top_value STRING, top_count BIGINT, size_bytes BIGINT, exact BOOLEAN, distinct_error DOUBLE, files BIGINT,
      |files_total BIGINT, snapshot STRING, current BOOLEAN, analyzed_at TIMESTAMP, user_defined MAP<STRING, STRING>""".stripMargin)
  override val meaning = "Statistics of every column, of the table or of one data file; exact says whether count, nulls, min and max are"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = known(session, call).map(_._1)

  override def known(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])] = known(session, call, None)

  /** The rows of all columns, or of one. */
  def known(session: SparkSession, call: Arguments, column: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val analyzed = AnalyzedTable.of(session, call.text("table"))
    val asked = analyzed.asked(call.value("at"))
    val snapshot = analyzed.analyzedColumns(asked)
    val all = analyzed.table.leaves(asked)
    val leaves = column.fold[Seq[Leaf]](all)(name => Seq(analyzed.leaf(session, name, all)))
    call.optional("file") match {
      case None => ofTable(analyzed, snapshot, leaves, asked)
      case Some(path) => ofFile(analyzed, snapshot, leaves, path, asked)
    }
  }

  private def ofTable(
      analyzed: AnalyzedTable, snapshot: Snapshot, leaves: Seq[Leaf], asked: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val byKey = analyzed.store.tableSummary(snapshot).map(row => snapshot.columns(row.column).key -> row).toMap
    val written = snapshot.columns.map(column => column.key -> column.dataType).toMap
    val tops = snapshot.frequencies.headOption.fold(Map.empty[Int, ValueRow])(lists => analyzed.store.tops(lists.ref, None))
      .map { case (column, top) => snapshot.columns(column).key -> top }
    leaves.map { leaf =>
      val row = byKey.get(leaf.key).filter(_.files > 0)
      val isWhole = snapshot.exact && row.fold(snapshot.filesTotal == 0)(_.files == snapshot.filesTotal)
      val origins = Seq(row.fold(0L)(_.files.toLong), snapshot.filesTotal) ++ origin(analyzed, snapshot, asked)
      answer(leaf, row, written.getOrElse(leaf.key, ""), snapshot.rows, isWhole, origins, tops.get(leaf.key)) -> row
    }
  }

  private def ofFile(analyzed: AnalyzedTable, snapshot: Snapshot, leaves: Seq[Leaf], path: String,
      asked: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val files = new FileLevel(analyzed, snapshot)
    val file = files.find(path)
    val known = files.columns(Seq(file), leaves.map(_.key)).map(known => known.column.key -> known).toMap
    if (known.isEmpty) throw MetastoreException.noStatistics(analyzed.name, s" of the data file $path")
    val tops = files.tops(file)
    leaves.map { leaf =>
      val found = known.get(leaf.key)
      val deleted = file.deletedRows.filter(_ > 0).isDefined || file.deletes.isDefined
      val live = file.rows.map(_ - file.deletedRows.getOrElse(0L))
      val origins = Seq(found.fold(0L)(_ => 1L), 1L) ++ origin(analyzed, snapshot, asked)
      answer(leaf, found.map(_.row), found.fold("")(_.column.dataType), live, !deleted && found.isDefined, origins,
        tops.get(leaf.key)) -> found.map(_.row)
    }
  }

  private def origin(analyzed: AnalyzedTable, snapshot: Snapshot, asked: Option[String]): Seq[Any] =
    Seq(snapshot.id, analyzed.isCurrent(snapshot) && analyzed.isAsked(snapshot, asked), Rendering.timestamp(snapshot.analyzedAt))

  private def answer(leaf: Leaf, known: Option[SummaryRow], written: String, count: Any, exact: Boolean, origin: Seq[Any],
      top: Option[ValueRow]): InternalRow = {
    val text = Rendering.of(written, leaf.dataType)
    def percentile(p: Int) = text.value(known.flatMap(_.percentiles.lift(p)))
    val bounds = Seq(
      known.fold(null: Any)(row => text.bound(row.lo, row.loExact)), known.fold(null: Any)(row => text.bound(row.hi, row.hiExact)))
    val nullShare = known.filter(_.rows > 0).flatMap(row => row.nulls.map(_ * 100.0 / row.rows))
    // Nothing where a value that its list leaves out may be more frequent.
    val sureTop = top.filter(_.frequency >= known.flatMap(_.frequenciesFloor).getOrElse(0L))
    val isExact = exact && known.forall(row => row.nulls.isDefined && (row.lo.isEmpty || row.loExact) && (row.hi.isEmpty || row.hiExact))
    Answer.row(Seq(leaf.name, leaf.dataType.simpleString) ++ bounds ++ Seq(
      known.flatMap(_.distinct), known.flatMap(_.mean), known.flatMap(deviation), percentile(25), percentile(50), percentile(75),
      count, nullShare, known.flatMap(_.nulls), known.flatMap(_.nans), known.flatMap(_.avgLen), known.flatMap(_.maxLen),
      text.value(sureTop.map(_.value)), sureTop.map(_.frequency),
      known.flatMap(_.compressedBytes), isExact, known.flatMap(_.distinctError)) ++ origin ++
      Seq(known.map(row => UserDefined.texts(row.extra))): _*)
  }

  /** Of a sample: of fewer than two values there is none. */
  private def deviation(row: SummaryRow): Option[Double] = for {
    m2 <- row.m2
    nulls <- row.nulls
    n = row.rows - nulls - row.nans.getOrElse(0L)
    if n > 1
  } yield math.sqrt(m2 / (n - 1))
}
