package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.statistics.objects.{
  DetailRef, ObjectRef, RanksRef, Snapshot, SummaryRow, TableFileRow, ValueCount
}
import org.metastore.spark.statistics.values.Histogram
import org.metastore.spark.tables.Leaf

/**
 * What is kept of one column of a table, or of one of its data files, beside its summary.
 *
 * @param file the data file in them; `None` at table level
 */
final class ColumnDetails private (
    analyzed: TableContext,
    val leaf: Leaf,
    written: String,
    val row: SummaryRow,
    describesLive: Boolean,
    val isRequested: Boolean,
    ordinal: Int,
    file: Option[Int],
    heads: Option[ObjectRef],
    lists: Seq[ObjectRef],
    bars: Option[ObjectRef],
    snapshot: Option[Snapshot] = None) {

  private def ranks: Seq[RanksRef] = snapshot.fold(Seq.empty[RanksRef])(_.ranks)

  /** Whether it describes the live rows of the snapshot asked for and nothing else. */
  def isWhole: Boolean = describesLive && isRequested

  val text: ValueText = ValueText.fromTypes(written, leaf.dataType)

  /** Values, null excluded; `None` where not known. */
  val values: Option[Long] = for (rows <- row.rows; nulls <- row.nulls) yield rows - nulls

  /** Whether values are kept. */
  def hasValueCounts: Boolean = row.frequencies.exists(_ != "none")

  /** The most frequent values, none where all are null; raises METASTORE_NO_STATISTICS where none were kept. */
  def frequent(top: Option[Int]): Seq[ValueCount] = {
    if (!hasValueCounts && !values.contains(0L)) throw missing("frequencies")
    val few = top.exists(_ <= ColumnDetails.Heads)
    val objects = if (few) heads.toSeq else lists
    val counts = objects.flatMap(analyzed.store.values(_, ordinal, file, few))
    val isRanked = objects.size <= 1 && (few || !snapshot.exists(_.distribution.contains(ordinal)))
    val ordered = if (isRanked) counts else counts.sorted(ColumnDetails.Ranked)
    ordered.take(top.getOrElse(Int.MaxValue))
  }

  /** The histogram, none where the column has no value; raises METASTORE_NO_STATISTICS where none was kept. */
  def histogram: Option[Histogram] = {
    val found = bins
    if (found.isEmpty && !row.numbers.contains(0L)) throw missing("histogram")
    found
  }

  /** The histogram, if one was kept. */
  def bins: Option[Histogram] =
    analyzed.histogram(bars, row, ordinal, file).orElse(Histogram.fromInfinities(row))

  /** The edges of the histogram's bins as texts; none if no histogram was kept. */
  def edgeTexts: IndexedSeq[UTF8String] =
    bins.fold(IndexedSeq.empty[UTF8String])(_.edges.map(text.edge(_, row)))

  /** Exact quantiles, where the column has ranks; none of them where it has no value. */
  def quantiles(probabilities: Seq[Double]): Option[Seq[Option[Any]]] =
    analyzed.store.quantiles(ranks, ordinal, probabilities)

  /** The distinct values in order, each with its last rank, where the column has ranks. */
  def rankedValues: Seq[(Any, Long)] = analyzed.store.listRanks(ranks, ordinal)

  /** Paths of the table's data files, in the order in which values name them. */
  lazy val paths: IndexedSeq[String] =
    snapshot.fold(IndexedSeq.empty[String])(analyzed.store.tableFiles(_).map(_.path))

  private def missing(kind: String) = analyzed.noStatistics(
    s" of this kind ($kind) for the column ${leaf.name}",
    leaf.name)
}

object ColumnDetails {
  private val Heads = Contract.limit("heads")

  /** The most frequent first, of equally frequent ones the least, NaN last: as lists are stored. */
  private val Ranked: Ordering[ValueCount] = (one: ValueCount, other: ValueCount) =>
    if (one.frequency != other.frequency) java.lang.Long.compare(other.frequency, one.frequency)
    else (one.value, other.value) match {
      case (a: Long, b: Long) => java.lang.Long.compare(a, b)
      case (a: Double, b: Double) => java.lang.Double.compare(a, b)
      case (a: Array[Byte], b: Array[Byte]) => java.util.Arrays.compareUnsigned(a, b)
      case (a, b) => throw new IllegalArgumentException(s"values $a and $b of one column")
    }

  /** The details that a call asks for by `table`, `column`, `file` and `at`. */
  def find(session: SparkSession, call: Arguments): ColumnDetails = {
    val analyzed = new Call(session, call)
    analyzed.details(analyzed.leaf(call.text("column")))
  }

  /** As `of`, of every column that has any where none is asked for. */
  def all(session: SparkSession, call: Arguments): Seq[ColumnDetails] = {
    val analyzed = new Call(session, call)
    val leaves = call.optional("column").fold(analyzed.leaves)(name => IndexedSeq(analyzed.leaf(name)))
    leaves.flatMap(analyzed.known)
  }

  /** A call with what its columns share. */
  private final class Call(session: SparkSession, call: Arguments) {
    private val analyzed = TableContext.open(session, call.text("table"))
    private val asked = analyzed.requestedSnapshot(call.value("at"))
    private val snapshot = analyzed.snapshotWithColumns(asked)
    private val isAsked = analyzed.isRequested(snapshot, asked)
    private lazy val level = new FileLevel(analyzed, snapshot)
    private lazy val file = call.optional("file").map(level.find)
    private lazy val rows = analyzed.rowsByKey(snapshot)

    val leaves: IndexedSeq[Leaf] = analyzed.table.leaves(asked)

    /** The leaf of a name, whose values have to be kept. */
    def leaf(name: String): Leaf = {
      val leaf = analyzed.leaf(session, name, analyzed.described(asked, snapshot))
      if (isOnlyCounted(leaf))
        throw MetastoreException.invalidArgument(
          "column",
          s"of ${leaf.name}, ${leaf.dataType.simpleString}, only counts are kept")
      leaf
    }

    def details(leaf: Leaf): ColumnDetails =
      if (file.isEmpty && snapshot.filesTotal == 0) ofNoRows(leaf)
      else known(leaf).getOrElse {
        throw analyzed.noStatistics(s" of the column ${leaf.name}", leaf.name)
      }

    /** None where nothing is known, or only counts are kept. */
    def known(leaf: Leaf): Option[ColumnDetails] =
      if (isOnlyCounted(leaf)) None
      else file.fold(rows.get(leaf.key).map(ofTable(leaf, _)))(ofFile(leaf, _))

    private def isOnlyCounted(leaf: Leaf) = snapshot.columns.lift(ordinal(leaf)).exists(_.encoding.isEmpty)

    private def ordinal(leaf: Leaf): Int = snapshot.columns.indexWhere(_.key == leaf.key)

    private def ofNoRows(leaf: Leaf): ColumnDetails = new ColumnDetails(
      analyzed,
      leaf,
      "",
      SummaryRow.ofNoRows(ordinal(leaf)),
      snapshot.exact,
      isAsked,
      ordinal(leaf),
      None,
      None,
      Nil,
      None)

    private def ofTable(leaf: Leaf, row: SummaryRow): ColumnDetails = {
      val lists = snapshot.frequenciesOf(row.column).map(_.ref)
      new ColumnDetails(
        analyzed,
        leaf,
        snapshot.columns(row.column).dataType,
        row,
        snapshot.exact && row.files == snapshot.filesTotal,
        isAsked,
        row.column,
        None,
        snapshot.frequencies.headOption.map(_.ref),
        lists,
        snapshot.histograms,
        Some(snapshot))
    }

    private def ofFile(leaf: Leaf, file: TableFileRow): Option[ColumnDetails] =
      for {
        known <- level.columns(Seq(file), Seq(leaf.key)).headOption
        (listed, at) <- level.details(file, leaf.key)
      } yield {
        // Both kinds of one file were written together: its place is the same in both.
        val place = listed.frequencies.orElse(listed.histograms).map(_.file)
        def inPlace(detail: Option[DetailRef]): Option[ObjectRef] =
          detail.filter(one => place.contains(one.file)).map(_.ref)
        val lists = inPlace(listed.frequencies)
        new ColumnDetails(
          analyzed,
          leaf,
          known.column.dataType,
          known.row,
          file.deletes.isEmpty,
          isAsked,
          at,
          place,
          lists,
          lists.toSeq,
          inPlace(listed.histograms))
      }
  }
}
