package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.{Snapshot, SummaryRow, ValueCount}
import org.metastore.spark.statistics.values.{Histogram, Sparkline}
import org.metastore.spark.tables.Leaf

/** `metastore.summary(table [, file] [, at])`: one row a column, of the table or of one of its data files. */
object SummaryFunction extends StatisticsFunction("summary") {

  /** The rows of all columns; a view may ask for those of one. */
  override def rowsWithStatistics(
      session: SparkSession,
      call: Arguments): Seq[(InternalRow, Option[SummaryRow])] = {
    val analyzed = TableContext.open(session, call.text("table"))
    val asked = analyzed.requestedSnapshot(call.value("at"))
    val snapshot = analyzed.snapshotWithColumns(asked)
    val all = analyzed.described(asked, snapshot)
    val leaves = analyzed.leavesOf(session, call, all)
    call.optional("file") match {
      case None => ofTable(analyzed, snapshot, leaves, asked)
      case Some(path) => ofFile(analyzed, snapshot, leaves, path, asked)
    }
  }

  private def ofTable(
      analyzed: TableContext,
      snapshot: Snapshot,
      leaves: Seq[Leaf],
      asked: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val byKey = analyzed.rowsByKey(snapshot)
    val columns = Indexed.by(snapshot.columns)(_.key)
    val tops =
      for {
        lists <- snapshot.frequencies.take(1)
        (column, top) <- analyzed.store.mostFrequent(lists.ref, None)
      } yield snapshot.columns(column).key -> top
    val topByKey = tops.toMap
    val (left, total) = filesLeft(analyzed, snapshot, asked)
    val scope = Scope(
      snapshot.physicalRows,
      snapshot.rows,
      snapshot.exact && analyzed.isRequested(snapshot, asked),
      snapshot.filesTotal,
      left,
      total,
      origin(analyzed, snapshot, asked))
    leaves.map { leaf =>
      val row = byKey.get(leaf.key).map(withRanks(analyzed, snapshot, _))
      val written = columns.get(leaf.key).fold("")(_.dataType)
      answer(leaf, row.getOrElse(SummaryRow.Unknown), written, scope, topByKey.get(leaf.key)) -> row
    }
  }

  /** How many data files of an analyzed snapshot the one asked for still has, and how many that has. */
  private def filesLeft(analyzed: TableContext, snapshot: Snapshot, asked: Option[String]): (Long, Long) =
    if (analyzed.isRequested(snapshot, asked)) (snapshot.filesTotal, snapshot.filesTotal)
    else {
      val files = asked.toSeq.flatMap(analyzed.table.dataFiles)
      val live = Indexed.set(files)(_.key)
      (analyzed.store.tableFiles(snapshot).count(file => live(file.key)).toLong, live.size.toLong)
    }

  /** A column's row with the exact quartiles, where it has ranks: `quantiles` has them from there. */
  private def withRanks(analyzed: TableContext, snapshot: Snapshot, row: SummaryRow): SummaryRow =
    analyzed.store.quantiles(snapshot.ranks, row.column, Quartiles.map(_ / 100.0)) match {
      case Some(exact) if row.percentiles.nonEmpty =>
        var percentiles = row.percentiles
        for ((place, Some(value)) <- Quartiles.zip(exact)) percentiles = percentiles.updated(place, value)
        row.withPercentiles(percentiles)
      case _ => row
    }

  private val Quartiles = Seq(25, 50, 75)

  private def ofFile(
      analyzed: TableContext,
      snapshot: Snapshot,
      leaves: Seq[Leaf],
      path: String,
      asked: Option[String]): Seq[(InternalRow, Option[SummaryRow])] = {
    val files = new FileLevel(analyzed, snapshot)
    val file = files.find(path)
    val known = Indexed.by(files.columns(Seq(file), leaves.map(_.key)))(_.column.key)
    if (known.isEmpty) throw analyzed.noStatistics(s" of the data file $path")
    lazy val histograms = files.histograms(file)
    def withPercentiles(row: SummaryRow, key: String): SummaryRow = {
      val bins = if (row.percentiles.isEmpty) histograms.get(key) else None
      bins.flatMap(Histogram.fromRow(_, row)).fold(row)(known => row.withPercentiles(known.percentiles))
    }
    val tops = files.mostFrequent(file)
    val isWhole = file.deletes.isEmpty && analyzed.isRequested(snapshot, asked)
    val scope = Scope(
      file.rows,
      file.liveRows,
      isWhole,
      files = 1,
      filesLeft = 1,
      filesTotal = 1,
      origin(analyzed, snapshot, asked))
    leaves.map { leaf =>
      val row = known.get(leaf.key).map(column => withPercentiles(column.row, leaf.key))
      val written = known.get(leaf.key).fold("")(_.column.dataType)
      answer(leaf, row.getOrElse(SummaryRow.Unknown), written, scope, tops.get(leaf.key)) -> row
    }
  }

  private def origin(analyzed: TableContext, snapshot: Snapshot, asked: Option[String]): Seq[Any] =
    Seq(
      snapshot.id,
      analyzed.isCurrent(snapshot) && analyzed.isRequested(snapshot, asked),
      ValueText.timestamp(snapshot.analyzedAt))

  /** What the rows of a summary share. */
  private final case class Scope(
      rows: Option[Long],
      live: Option[Long],
      exact: Boolean,
      files: Long,
      filesLeft: Long,
      filesTotal: Long,
      origin: Seq[Any])

  /** Counts are those of live rows or NULL; bounds and all that tells of a distribution describe physical rows. */
  private def answer(
      leaf: Leaf,
      known: SummaryRow,
      written: String,
      scope: Scope,
      top: Option[ValueCount]): InternalRow = {
    val text = ValueText.fromTypes(written, leaf.dataType)
    val percentiles = known.percentiles
    def percentile(p: Int) =
      if (percentiles.isDefinedAt(p)) text.edge(percentiles(p), known) else null
    // Nothing where a value that its list leaves out may be more frequent.
    val floor = known.get[Long]("frequencies_floor").getOrElse(0L)
    val sureTop = top.filter(_.frequency >= floor)
    // All rows, not those of some of the files.
    val described = if (known.rows == scope.rows) known.rows else None
    def live(part: Option[Long]): Option[Long] =
      for {
        p <- part
        all <- described
        found <- LiveShare.count(p, all, scope.live)
      } yield found
    val nulls = live(known.nulls)
    val nullShare = for {
      n <- nulls
      rows <- scope.live
      if rows > 0
    } yield n * 100.0 / rows
    val mostDistinct = scope.live.fold(Long.MaxValue)(_ - nulls.getOrElse(0L))
    val distinct = known.distinct.map(math.min(_, mostDistinct))
    val describesLive = described.isDefined && scope.live == described
    val distinctError = if (describesLive) known.get[Double]("distinct_error") else None
    val files = LiveShare.count(known.files.toLong, scope.files, Some(scope.filesLeft))
    val hasExactBounds = (known.lo.isEmpty || known.loExact) && (known.hi.isEmpty || known.hiExact)
    val isExact = scope.exact && files.contains(scope.filesTotal) &&
      (known.files == 0 || (known.nulls.isDefined && hasExactBounds))
    val cells = Seq[Any](
      leaf.name,
      leaf.dataType.simpleString,
      text.bound(known.lo, known.loExact),
      text.bound(known.hi, known.hiExact),
      distinct,
      finiteMean(known),
      deviation(known),
      percentile(25),
      percentile(50),
      percentile(75),
      scope.live,
      nullShare,
      nulls,
      live(known.nans),
      known.get[Double]("avg_len"),
      known.get[Long]("max_len"),
      text.value(sureTop.map(_.value)),
      live(sureTop.map(_.frequency)),
      known.get[Long]("compressed_bytes"),
      isExact,
      distinctError,
      files,
      scope.filesTotal)
    val lastCells = Seq[Any](
      UserDefinedStatistics.texts(known.extra),
      Sparkline.draw(percentiles),
      live(infinities(leaf, known)))
    ResultRow.row(cells ++ scope.origin ++ lastCells: _*)
  }

  /** Of a sample: of fewer than two values there is none. */
  private def deviation(row: SummaryRow): Option[Double] = for {
    m2 <- row.get[Double]("m2")
    numbers <- row.numbers
    finite = numbers - countInfinities(row).getOrElse(0L)
    if finite > 1 && finiteMean(row).isDefined
  } yield math.sqrt(m2 / (finite - 1))

  /** The mean of the finite values; `None` where infinite ones may be in it. */
  private def finiteMean(row: SummaryRow): Option[Double] =
    row.get[Double]("mean").filter(mean => row.infinities.isDefined || !(mean.isNaN || mean.isInfinite))

  /** How many values are infinite; `None` where that is not known. */
  private def infinities(leaf: Leaf, row: SummaryRow): Option[Long] = leaf.dataType match {
    case FloatType | DoubleType if row.numbers.contains(0L) && row.nans.isDefined => Some(0)
    case FloatType | DoubleType => countInfinities(row)
    case _ => Some(0)
  }

  private def countInfinities(row: SummaryRow): Option[Long] =
    for ((below, above) <- row.infinities) yield below + above
}

/** Statistics describe all rows and files of a moment; of those that are left later, counts are known only here and there. */
object LiveShare {

  /**
   * How many of `part` of `whole` things are among the `live` ones of them; `None` where that cannot be told.
   *
   * @param live how many of the whole are left; `None` where not known
   */
  def count(part: Long, whole: Long, live: Option[Long]): Option[Long] =
    live.filter(left => left == whole || part == 0 || part == whole || left == 0).map(math.min(part, _))
}
