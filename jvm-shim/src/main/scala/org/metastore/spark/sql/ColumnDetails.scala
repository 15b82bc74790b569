package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession

import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.statistics.objects.{DetailRef, ObjectRef, RanksRef, Snapshot, SummaryRow, TableFileRow, ValueCount}
import org.metastore.spark.statistics.values.Histogram
import org.metastore.spark.tables.Leaf

/**
 * What is kept of one column of a table, or of one of its data files, beside its summary.
 *
 * @param file the data file in them; `None` at table level
 */
final class ColumnDetails private (
    analyzed: TableContext, val leaf: Leaf, written: String, val row: SummaryRow, describesLive: Boolean, val isRequested: Boolean,
    ordinal: Int, file: Option[Int], heads: Option[ObjectRef], lists: Seq[ObjectRef], bars: Option[ObjectRef],
    snapshot: Option[Snapshot] = None) {

  private def ranks: Seq[RanksRef] = snapshot.fold(Seq.empty[RanksRef])(_.ranks)

  /** Whether it describes the live rows of the snapshot asked for and nothing else. */
  def isWhole: Boolean = describesLive && isRequested

  val text: ValueText = ValueText.of(written, leaf.dataType)

  /** Values, null excluded; `None` where not known. */
  val values: Option[Long] = for (rows <- row.rows; nulls <- row.nulls) yield rows - nulls

  /** Whether values are kept. */
  def hasValueCounts: Boolean = row.frequencies.exists(_ != "none")

  /** The most frequent values; raises METASTORE_NO_STATISTICS where none were kept. */
  def frequent(top: Option[Int]): Seq[ValueCount] = {
    if (!hasValueCounts) throw missing("frequencies")
    val few = top.exists(_ <= ColumnDetails.Heads)
    val found = (if (few) heads.toSeq else lists).map(analyzed.store.values(_, ordinal, file, few))
    val isRanked = found.size <= 1 && (few || !snapshot.exists(_.distribution.contains(ordinal)))
    val ordered = if (isRanked) found.flatten else found.flatten.sorted(ColumnDetails.Ranked)
    top.fold(ordered)(ordered.take)
  }

  /** The histogram, none where the column has no value; raises METASTORE_NO_STATISTICS where none was kept. */
  def histogram: Option[Histogram] = {
    val found = bins
    if (found.isEmpty && !number.contains(0L)) throw missing("histogram")
    found
  }

  /** The histogram, if one was kept. */
  def bins: Option[Histogram] =
    bars.flatMap(analyzed.store.histogram(_, ordinal, file)).flatMap(Histogram.of(_, row))

  /** What tells ranks, none where the column has no value: bins of equal width do not where percentiles were kept. */
  def rankHistogram: Option[Histogram] = histogram.map(bins => if (bins.kind == Histogram.EquiHeight) bins else Histogram.ofPercentiles(row).getOrElse(bins))

  /** Exact quantiles, where the column has ranks; none of them where it has no value. */
  def quantiles(probabilities: Seq[Double]): Option[Seq[Option[Any]]] = analyzed.store.quantiles(ranks, ordinal, probabilities)

  /** The distinct values in order, each with its last rank, where the column has ranks. */
  def rankedValues: Seq[(Any, Long)] = analyzed.store.listRanks(ranks, ordinal)

  /** Paths of the table's data files, in the order in which values name them. */
  lazy val paths: IndexedSeq[String] = snapshot.fold(IndexedSeq.empty[String])(analyzed.store.tableFiles(_).map(_.path))

  private val number: Option[Long] = values.map(_ - row.nans.getOrElse(0L))

  private def missing(kind: String) = MetastoreException.noStatistics(
    analyzed.name, s" of this kind ($kind) for the column ${leaf.name}", s"COLUMNS ${leaf.name}")
}

object ColumnDetails {
  private val Heads = 10

  /** The most frequent first, of equally frequent ones the least, NaN last: as lists are stored. */
  private val Ranked: Ordering[ValueCount] = (one: ValueCount, other: ValueCount) =>
    if (one.frequency != other.frequency) java.lang.Long.compare(other.frequency, one.frequency)
    else (one.value, other.value) match {
      case (a: Long, b: Long) => java.lang.Long.compare(a, b)
      case (a: Double, b: Double) => java.lang.Double.compare(a, b)
      case (a: Array[Byte], b: Array[Byte]) => java.util.Arrays.compareUnsigned(a, b)
      case (a, b) => throw new IllegalArgumentException(s"values $a and $b of one column")
    }

  /** The details of all columns that have any, or of one, in a table or in one of its data files. */
  def all(session: SparkSession, table: String, column: Option[String], file: Option[String]): Seq[ColumnDetails] = {
    val analyzed = TableContext.of(session, table)
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val known = analyzed.table.leaves(current)
    val leaves = column.fold[Seq[Leaf]](known)(name => Seq(analyzed.leaf(session, name, known)))
    val isAsked = analyzed.isRequested(snapshot, current)
    val encoded = snapshot.columns.filter(_.encoding.isDefined).map(_.key).toSet
    if (column.isDefined) leaves.foreach(requireValues(snapshot, _))
    file match {
      case None => ofTable(analyzed, snapshot, isAsked, leaves)
      case Some(path) =>
        val files = new FileLevel(analyzed, snapshot)
        val found = files.find(path)
        leaves.filter(leaf => encoded(leaf.key)).flatMap(ofFile(analyzed, files, found, isAsked, _))
    }
  }

  private def requireValues(snapshot: Snapshot, leaf: Leaf): Unit =
    if (snapshot.columns.find(_.key == leaf.key).exists(_.encoding.isEmpty))
      throw MetastoreException.invalidArgument("column", s"of ${leaf.name}, ${leaf.dataType.simpleString}, only counts are kept")

  private def ofTable(analyzed: TableContext, snapshot: Snapshot, isAsked: Boolean, leaves: Seq[Leaf]): Seq[ColumnDetails] = {
    val rows = analyzed.store.tableSummary(snapshot).filter(_.files > 0).map(row => snapshot.columns(row.column).key -> row).toMap
    for {
      leaf <- leaves
      row <- rows.get(leaf.key)
      if snapshot.columns(row.column).encoding.isDefined
    } yield ofTable(analyzed, snapshot, isAsked, leaf, row)
  }

  private def ofTable(
      analyzed: TableContext, snapshot: Snapshot, isAsked: Boolean, leaf: Leaf, row: SummaryRow): ColumnDetails = {
    val lists = snapshot.frequencies.filter(_.columns.contains(row.column)).map(_.ref)
    new ColumnDetails(
      analyzed, leaf, snapshot.columns(row.column).dataType, row, snapshot.exact && row.files == snapshot.filesTotal, isAsked,
      row.column, None,
      snapshot.frequencies.headOption.map(_.ref), lists, snapshot.histograms, Some(snapshot))
  }

  /** The details of the arguments `table`, `column`, `file` and `at` of a call. */
  def of(session: SparkSession, call: Arguments): ColumnDetails = {
    val analyzed = TableContext.of(session, call.text("table"))
    val asked = analyzed.requestedSnapshot(call.value("at"))
    val snapshot = analyzed.snapshotWithColumns(asked)
    val leaf = analyzed.leaf(session, call.text("column"), analyzed.table.leaves(asked))
    val isAsked = analyzed.isRequested(snapshot, asked)
    val ordinal = snapshot.columns.indexWhere(_.key == leaf.key)
    requireValues(snapshot, leaf)
    def missing = MetastoreException.noStatistics(analyzed.name, s" of the column ${leaf.name}", s"COLUMNS ${leaf.name}")
    call.optional("file") match {
      case None if snapshot.filesTotal == 0 =>
        new ColumnDetails(analyzed, leaf, "", SummaryRow.ofNoRows(ordinal), snapshot.exact, isAsked, ordinal, None, None, Nil, None)
      case None =>
        val row = analyzed.store.tableSummary(snapshot).find(_.column == ordinal).filter(_.files > 0).getOrElse(throw missing)
        ofTable(analyzed, snapshot, isAsked, leaf, row)
      case Some(path) =>
        val files = new FileLevel(analyzed, snapshot)
        val file = files.find(path)
        ofFile(analyzed, files, file, isAsked, leaf).getOrElse(throw missing)
    }
  }

  private def ofFile(
      analyzed: TableContext, files: FileLevel, file: TableFileRow, isAsked: Boolean, leaf: Leaf): Option[ColumnDetails] =
    for {
      known <- files.columns(Seq(file), Seq(leaf.key)).headOption
      (listed, at) <- files.details(file, leaf.key)
    } yield {
      // Both kinds of one file were written together: its place is the same in both.
      val place = listed.frequencies.orElse(listed.histograms).map(_.file)
      def inPlace(ref: Option[DetailRef]): Option[ObjectRef] = ref.filter(r => place.contains(r.file)).map(_.ref)
      new ColumnDetails(
        analyzed, leaf, known.column.dataType, known.row, file.deletes.isEmpty, isAsked, at,
        place, inPlace(listed.frequencies), inPlace(listed.frequencies).toSeq, inPlace(listed.histograms))
    }
}
