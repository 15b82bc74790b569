package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.{Snapshot, SummaryRow, ValueCount}
import org.metastore.spark.statistics.values.{Histogram, Sparkline}
import org.metastore.spark.tables.Leaf

/**
 * `metastore.summary(table [, file] [, at])`: one row for each column, of the table or of one of its data
 * files.
 */
object SummaryFunction extends StatisticsFunction("summary") {

  /** The rows of all columns; of one for a view that names it. */
  override def rowsWithStatistics(
      session: SparkSession,
      call: Arguments): Seq[(InternalRow, Option[SummaryRow])] = {
    val context = TableContext.open(session, call.text("table"))
    val requested = context.requestedSnapshot(call.value("at"))
    val snapshot = context.snapshotWithColumns(requested)
    val all = context.described(requested, snapshot)
    val leaves = context.leavesOf(session, call, all)
    call.optional("file") match {
      case None => tableRows(context, snapshot, leaves, requested)
      case Some(path) => fileRows(context, snapshot, leaves, path, requested)
    }
  }

  private def tableRows(
      context: TableContext,
      snapshot: Snapshot,
      leaves: Seq[Leaf],
      requested: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val rows = context.rowsByKey(snapshot)
    val columns = Indexed.by(snapshot.columns)(_.key)
    val tops = mostFrequent(context, snapshot)
    val (remaining, total) = filesRemaining(context, snapshot, requested)
    val scope = Scope(
      snapshot.physicalRows,
      snapshot.rows,
      snapshot.exact && context.isRequested(snapshot, requested),
      snapshot.filesTotal,
      remaining,
      total,
      origin(context, snapshot, requested))
    leaves.map { leaf =>
      val row = rows.get(leaf.key).map(withRanks(context, snapshot, _))
      val written = columns.get(leaf.key).fold("")(_.dataType)
      answer(leaf, row, written, scope, tops.get(leaf.key))
    }
  }

  /** The most frequent value of each column of a table, by the column's key. */
  private def mostFrequent(context: TableContext, snapshot: Snapshot): Map[String, ValueCount] = {
    val tops = for {
      lists <- snapshot.frequencies.take(1)
      (column, top) <- context.store.mostFrequent(lists.ref, None)
    } yield snapshot.columns(column).key -> top
    tops.toMap
  }

  /**
   * The number of an analyzed snapshot's data files that the requested one still has, and of all of its
   * files.
   */
  private def filesRemaining(
      context: TableContext,
      snapshot: Snapshot,
      requested: Option[String]): (Long, Long) =
    if (context.isRequested(snapshot, requested)) (snapshot.filesTotal, snapshot.filesTotal)
    else {
      val files = requested.toSeq.flatMap(context.table.dataFiles)
      val live = Indexed.set(files)(_.key)
      (context.store.tableFiles(snapshot).count(file => live(file.key)).toLong, live.size.toLong)
    }

  /** The row with exact quartiles where the column has ranks, as `quantiles` shows them. */
  private def withRanks(context: TableContext, snapshot: Snapshot, row: SummaryRow): SummaryRow =
    context.store.quantiles(snapshot.ranks, row.column, Quartiles.map(_ / 100.0)) match {
      case Some(exact) if row.percentiles.nonEmpty =>
        var percentiles = row.percentiles
        for ((p, Some(value)) <- Quartiles.zip(exact)) percentiles = percentiles.updated(p, value)
        row.withPercentiles(percentiles)
      case _ => row
    }

  private val Quartiles = Seq(25, 50, 75)

  private def fileRows(
      context: TableContext,
      snapshot: Snapshot,
      leaves: Seq[Leaf],
      path: String,
      requested: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val files = new FileLevel(context, snapshot)
    val file = files.find(path)
    val columns = Indexed.by(files.columns(Seq(file), leaves.map(_.key)))(_.column.key)
    if (columns.isEmpty) throw context.noStatistics(s" of the data file $path")
    lazy val histograms = files.histograms(file)
    def withPercentiles(row: SummaryRow, key: String): SummaryRow = {
      val stored = if (row.percentiles.isEmpty) histograms.get(key) else None
      val bins = stored.flatMap(Histogram.fromRow(_, row))
      bins.fold(row)(histogram => row.withPercentiles(histogram.percentiles))
    }
    val tops = files.mostFrequent(file)
    val isWhole = file.deletes.isEmpty && context.isRequested(snapshot, requested)
    val scope = Scope(
      file.rows,
      file.liveRows,
      isWhole,
      files = 1,
      filesRemaining = 1,
      filesTotal = 1,
      origin(context, snapshot, requested))
    leaves.map { leaf =>
      val column = columns.get(leaf.key)
      val row = column.map(summary => withPercentiles(summary.row, leaf.key))
      val written = column.fold("")(_.column.dataType)
      answer(leaf, row, written, scope, tops.get(leaf.key))
    }
  }

  private def origin(context: TableContext, snapshot: Snapshot, requested: Option[String]): Seq[Any] =
    Seq(
      snapshot.id,
      context.isCurrent(snapshot) && context.isRequested(snapshot, requested),
      ValueText.timestamp(snapshot.analyzedAt))

  /** The values that all rows of a summary share. */
  private final case class Scope(
      rows: Option[Long],
      live: Option[Long],
      exact: Boolean,
      files: Long,
      filesRemaining: Long,
      filesTotal: Long,
      origin: Seq[Any])

  private def answer(
      leaf: Leaf,
      row: Option[SummaryRow],
      written: String,
      scope: Scope,
      top: Option[ValueCount]): (InternalRow, Option[SummaryRow]) =
    (toRow(leaf, row.getOrElse(SummaryRow.Unknown), written, scope, top), row)

  /** Counts are those of live rows or NULL; bounds and distributions describe physical rows. */
  private def toRow(
      leaf: Leaf,
      summary: SummaryRow,
      written: String,
      scope: Scope,
      top: Option[ValueCount]): InternalRow = {
    val text = ValueText.fromTypes(written, leaf.dataType)
    val percentiles = summary.percentiles
    def percentile(p: Int) =
      if (percentiles.isDefinedAt(p)) text.edge(percentiles(p), summary) else null
    // A value that the list leaves out may be as frequent as the floor.
    val floor = summary.get[Long]("frequencies_floor").getOrElse(0L)
    val sureTop = top.filter(_.frequency >= floor)
    // All rows, not those of some of the files.
    val described = if (summary.rows == scope.rows) summary.rows else None
    def live(part: Option[Long]): Option[Long] =
      for {
        number <- part
        all <- described
        count <- LiveShare.count(number, all, scope.live)
      } yield count
    val nulls = live(summary.nulls)
    val nullShare = for (count <- nulls; rows <- scope.live if rows > 0) yield count * 100.0 / rows
    val mostDistinct = scope.live.fold(Long.MaxValue)(_ - nulls.getOrElse(0L))
    val distinct = summary.distinct.map(math.min(_, mostDistinct))
    val describesLive = described.isDefined && scope.live == described
    val distinctError = if (describesLive) summary.get[Double]("distinct_error") else None
    val files = LiveShare.count(summary.files.toLong, scope.files, Some(scope.filesRemaining))
    val hasExactBounds = (summary.lo.isEmpty || summary.loExact) && (summary.hi.isEmpty || summary.hiExact)
    val isExact = scope.exact && files.contains(scope.filesTotal) &&
      (summary.files == 0 || (summary.nulls.isDefined && hasExactBounds))
    val cells = Seq[Any](
      leaf.name,
      leaf.dataType.simpleString,
      text.bound(summary.lo, summary.loExact),
      text.bound(summary.hi, summary.hiExact),
      distinct,
      finiteMean(summary),
      deviation(summary),
      percentile(25),
      percentile(50),
      percentile(75),
      scope.live,
      nullShare,
      nulls,
      live(summary.nans),
      summary.get[Double]("avg_len"),
      summary.get[Long]("max_len"),
      text.value(sureTop.map(_.value)),
      live(sureTop.map(_.frequency)),
      summary.get[Long]("compressed_bytes"),
      isExact,
      distinctError,
      files,
      scope.filesTotal)
    val lastCells = Seq[Any](
      UserDefinedStatistics.texts(summary.extra),
      Sparkline.draw(percentiles),
      live(infinities(leaf, summary)))
    ResultRow.row(cells ++ scope.origin ++ lastCells: _*)
  }

  /** The standard deviation of a sample; None for fewer than two values. */
  private def deviation(row: SummaryRow): Option[Double] = for {
    m2 <- row.get[Double]("m2")
    numbers <- row.numbers
    finite = numbers - countInfinities(row).getOrElse(0L)
    if finite > 1 && finiteMean(row).isDefined
  } yield math.sqrt(m2 / (finite - 1))

  /** The mean of the finite values; `None` where infinite ones may be in it. */
  private def finiteMean(row: SummaryRow): Option[Double] =
    row.get[Double]("mean").filter(mean => row.infinities.isDefined || !(mean.isNaN || mean.isInfinite))

  /** The number of infinite values; `None` where it is unknown. */
  private def infinities(leaf: Leaf, row: SummaryRow): Option[Long] = leaf.dataType match {
    case FloatType | DoubleType if row.numbers.contains(0L) && row.nans.isDefined => Some(0)
    case FloatType | DoubleType => countInfinities(row)
    case _ => Some(0)
  }

  private def countInfinities(row: SummaryRow): Option[Long] =
    for ((below, above) <- row.infinities) yield below + above
}

/** Counts among the live part of the rows or files that statistics describe. */
object LiveShare {

  /**
   * The number of live things among `part` of `total` things; `None` where it is unknown.
   *
   * @param live the number of live things of all; `None` if unknown
   */
  def count(part: Long, total: Long, live: Option[Long]): Option[Long] = {
    val isAllOrNothing = part == 0 || part == total
    for (alive <- live if isAllOrNothing || alive == total || alive == 0) yield math.min(part, alive)
  }
}
