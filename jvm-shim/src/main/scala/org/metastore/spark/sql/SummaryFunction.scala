package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{DoubleType, FloatType}

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
    val leaves = call.optional("column").fold(all)(name => IndexedSeq(analyzed.leaf(session, name, all)))
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
    def keyOf(column: Int): String = snapshot.columns(column).key
    val rows = analyzed.store.tableSummary(snapshot)
    val byKey = rows.map(row => keyOf(row.column) -> withRanks(analyzed, snapshot, row)).toMap
    val written = snapshot.columns.map(column => column.key -> column.dataType).toMap
    val tops =
      for (lists <- snapshot.frequencies.headOption.toSeq;
        (column, top) <- analyzed.store.mostFrequent(lists.ref, None))
        yield keyOf(column) -> top
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
      val row = byKey.get(leaf.key).filter(_.files > 0)
      answer(leaf, row, written.getOrElse(leaf.key, ""), scope, topByKey.get(leaf.key)) -> row
    }
  }

  /** How many data files of an analyzed snapshot the one asked for still has, and how many that has. */
  private def filesLeft(analyzed: TableContext, snapshot: Snapshot, asked: Option[String]): (Long, Long) =
    if (analyzed.isRequested(snapshot, asked)) (snapshot.filesTotal, snapshot.filesTotal)
    else {
      val live = asked.toSeq.flatMap(analyzed.table.dataFiles).map(_.key).toSet
      (analyzed.store.tableFiles(snapshot).count(file => live(file.key)).toLong, live.size.toLong)
    }

  /** A column's row with the exact quartiles, where it has ranks: `quantiles` has them from there. */
  private def withRanks(analyzed: TableContext, snapshot: Snapshot, row: SummaryRow): SummaryRow =
    analyzed.store.quantiles(snapshot.ranks, row.column, Quartiles.map(_ / 100.0)) match {
      case Some(exact) if row.percentiles.nonEmpty =>
        row.withPercentiles(Quartiles.zip(exact).foldLeft(row.percentiles) {
          case (found, (place, value)) => value.fold(found)(found.updated(place, _))
        })
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
    lazy val histograms = files.histograms(file)
    def withPercentiles(row: SummaryRow, key: String): SummaryRow =
      if (row.percentiles.nonEmpty) row
      else histograms.get(key).flatMap(Histogram.fromRow(_, row)).fold(row)(bins =>
        row.withPercentiles(bins.percentiles))
    val known = files.columns(Seq(file), leaves.map(_.key))
      .map(known => known.column.key -> known.copy(row = withPercentiles(known.row, known.column.key))).toMap
    if (known.isEmpty) throw analyzed.noStatistics(s" of the data file $path")
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
      val found = known.get(leaf.key)
      answer(
        leaf,
        found.map(_.row),
        found.fold("")(_.column.dataType),
        scope,
        tops.get(leaf.key)) -> found.map(_.row)
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
      known: Option[SummaryRow],
      written: String,
      scope: Scope,
      top: Option[ValueCount]): InternalRow = {
    val text = ValueText.fromTypes(written, leaf.dataType)
    def percentile(p: Int) = known.flatMap(row => row.percentiles.lift(p).map(text.edge(_, row))).orNull
    val bounds = Seq(
      known.fold(null: Any)(row => text.bound(row.lo, row.loExact)),
      known.fold(null: Any)(row => text.bound(row.hi, row.hiExact)))
    // Nothing where a value that its list leaves out may be more frequent.
    val sureTop = top.filter(_.frequency >= known.flatMap(_.get[Long]("frequencies_floor")).getOrElse(0L))
    // All rows, not those of some of the files.
    val described = known.flatMap(_.rows).filter(scope.rows.contains(_))
    def live(part: Option[Long]): Option[Long] =
      for (p <- part; all <- described; found <- LiveShare.count(p, all, scope.live)) yield found
    val nulls = live(known.flatMap(_.nulls))
    val nullShare = for (n <- nulls; rows <- scope.live if rows > 0) yield n * 100.0 / rows
    val most = scope.live.map(_ - nulls.getOrElse(0L))
    val distinct = known.flatMap(_.distinct).map(n => most.fold(n)(math.min(n, _)))
    val distinctError = known.flatMap(_.get[Double]("distinct_error")).filter(_ =>
      described.isDefined && scope.live == described)
    val files = LiveShare.count(known.fold(0L)(_.files.toLong), scope.files, Some(scope.filesLeft))
    val isExact = scope.exact && files.contains(scope.filesTotal) &&
      known.forall(row =>
        row.nulls.isDefined && (row.lo.isEmpty || row.loExact) && (row.hi.isEmpty || row.hiExact))
    ResultRow.row(Seq(leaf.name, leaf.dataType.simpleString) ++ bounds ++ Seq[Any](
      distinct,
      known.flatMap(finiteMean),
      known.flatMap(deviation),
      percentile(25),
      percentile(50),
      percentile(75),
      scope.live,
      nullShare,
      nulls,
      live(known.flatMap(_.nans)),
      known.flatMap(_.get[Double]("avg_len")),
      known.flatMap(_.get[Long]("max_len")),
      text.value(sureTop.map(_.value)),
      live(sureTop.map(_.frequency)),
      known.flatMap(_.get[Long]("compressed_bytes")),
      isExact,
      distinctError,
      files,
      scope.filesTotal) ++ scope.origin ++
      Seq(
        known.map(row => UserDefinedStatistics.texts(row.extra)),
        known.flatMap(row => Sparkline.draw(row.percentiles)),
        live(known.flatMap(infinities(leaf, _)))): _*)
  }

  /** Of a sample: of fewer than two values there is none. */
  private def deviation(row: SummaryRow): Option[Double] = for {
    m2 <- row.get[Double]("m2")
    numbers <- row.numbers
    finite = numbers - row.infinities.fold(0L) { case (below, above) => below + above }
    if finite > 1 && finiteMean(row).isDefined
  } yield math.sqrt(m2 / (finite - 1))

  /** The mean of the finite values; `None` where infinite ones may be in it. */
  private def finiteMean(row: SummaryRow): Option[Double] =
    row.get[Double]("mean").filter(mean => row.infinities.isDefined || !(mean.isNaN || mean.isInfinite))

  /** How many values are infinite; `None` where that is not known. */
  private def infinities(leaf: Leaf, row: SummaryRow): Option[Long] = leaf.dataType match {
    case FloatType | DoubleType =>
      row.infinities.map { case (below, above) => below + above }.orElse(row.numbers.filter(
        _ == 0 && row.nans.isDefined))
    case _ => Some(0)
  }
}

/** Statistics describe all rows and files of a moment; of those that are left later, counts are known only here and there. */
object LiveShare {

  /**
   * How many of `part` of `whole` things are among the `live` ones of them; `None` where that cannot be told.
   *
   * @param live how many of the whole are left; `None` where not known
   */
  def count(part: Long, whole: Long, live: Option[Long]): Option[Long] =
    live.filter(left => left == whole || part == 0 || part == whole || left == 0).map(left =>
      math.min(part, left))
}
