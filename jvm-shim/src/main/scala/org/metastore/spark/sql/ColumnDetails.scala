package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.contract.Contract
import org.metastore.spark.statistics.objects.{
  DetailRef, ObjectRef, RanksRef, Snapshot, SummaryRow, TableFileRow, ValueCount
}
import org.metastore.spark.statistics.values.Histogram
import org.metastore.spark.tables.Leaf

/**
 * The frequencies, histogram and ranks of one column of a table, or of one of its data files.
 *
 * @param file the data file's number in the objects; `None` at table level
 */
final class ColumnDetails private (
    context: TableContext,
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

  private def ranks: Seq[RanksRef] = snapshot.toSeq.flatMap(_.ranks)

  /** Whether it describes exactly the live rows of the requested snapshot. */
  def isWhole: Boolean = describesLive && isRequested

  val text: ValueText = ValueText.fromTypes(written, leaf.dataType)

  /** The number of values that are not null; `None` where it is unknown. */
  val values: Option[Long] = for (rows <- row.rows; nulls <- row.nulls) yield rows - nulls

  /** Whether counts of values are stored. */
  def hasValueCounts: Boolean = row.frequencies.exists(_ != "none")

  /** The most frequent values; empty if all are null. Raises METASTORE_NO_STATISTICS if none are stored. */
  def frequent(top: Option[Int]): Seq[ValueCount] = {
    if (!hasValueCounts && !values.contains(0L)) throw missing("frequencies")
    val areFew = top.exists(_ <= ColumnDetails.Heads)
    val objects = if (areFew) heads.toSeq else lists
    val counts = objects.flatMap(context.store.values(_, ordinal, file, areFew))
    val isRanked = objects.size <= 1 && (areFew || !snapshot.exists(_.distribution.contains(ordinal)))
    val ranked = if (isRanked) counts else counts.sorted(ColumnDetails.Ranked)
    ranked.take(top.getOrElse(Int.MaxValue))
  }

  /** The histogram; None if the column has no value. Raises METASTORE_NO_STATISTICS if none is stored. */
  def histogram: Option[Histogram] = {
    val stored = bins
    if (stored.isEmpty && !row.numbers.contains(0L)) throw missing("histogram")
    stored
  }

  /** The histogram, if one is stored. */
  def bins: Option[Histogram] =
    context.histogram(bars, row, ordinal, file).orElse(Histogram.fromInfinities(row))

  /** The edges of the histogram's bins as texts; none if no histogram is stored. */
  def edgeTexts: IndexedSeq[UTF8String] =
    bins.fold(IndexedSeq.empty[UTF8String])(_.edges.map(text.edge(_, row)))

  /** Exact quantiles where the column has ranks; each is None where the column has no value. */
  def quantiles(probabilities: Seq[Double]): Option[Seq[Option[Any]]] =
    context.store.quantiles(ranks, ordinal, probabilities)

  /** The distinct values in order, each with its last rank, where the column has ranks. */
  def rankedValues: Seq[(Any, Long)] = context.store.listRanks(ranks, ordinal)

  /** Paths of the table's data files, in the order in which values name them. */
  lazy val paths: IndexedSeq[String] =
    snapshot.fold(IndexedSeq.empty[String])(context.store.tableFiles(_).map(_.path))

  private def missing(kind: String) = context.noStatistics(
    s" of this kind ($kind) for the column ${leaf.name}",
    leaf.name)
}

object ColumnDetails {
  private val Heads = Contract.limit("heads")

  /** The order of stored lists: the most frequent first, of equally frequent values the least, NaN last. */
  private val Ranked: Ordering[ValueCount] = (first: ValueCount, second: ValueCount) =>
    if (first.frequency != second.frequency) java.lang.Long.compare(second.frequency, first.frequency)
    else (first.value, second.value) match {
      case (a: Long, b: Long) => java.lang.Long.compare(a, b)
      case (a: Double, b: Double) => java.lang.Double.compare(a, b)
      case (a: Array[Byte], b: Array[Byte]) => java.util.Arrays.compareUnsigned(a, b)
      case (a, b) => throw new IllegalArgumentException(s"values $a and $b of one column")
    }

  /** The details of the column that a call names by `table`, `column`, `file` and `at`. */
  def fromCall(session: SparkSession, call: Arguments): ColumnDetails = {
    val columns = new Call(session, call)
    columns.details(columns.leaf(call.text("column")))
  }

  /**
   * The details of a call's column as `fromCall` finds them; without `column`, of every column that has some.
   */
  def all(session: SparkSession, call: Arguments): Seq[ColumnDetails] = {
    val columns = new Call(session, call)
    val leaves = call.optional("column").fold(columns.leaves)(name => IndexedSeq(columns.leaf(name)))
    leaves.flatMap(columns.storedDetails(_))
  }

  /** A call, with the state that its columns share. */
  private final class Call(session: SparkSession, call: Arguments) {
    private val context = TableContext.open(session, call.text("table"))
    private val requested = context.requestedSnapshot(call.value("at"))
    private val snapshot = context.snapshotWithColumns(requested)
    private val isRequested = context.isRequested(snapshot, requested)
    private lazy val level = new FileLevel(context, snapshot)
    private lazy val file = call.optional("file").map(level.find)
    private lazy val rows = context.rowsByKey(snapshot)

    val leaves: IndexedSeq[Leaf] = context.table.leaves(requested)

    /** The leaf of a name; raises METASTORE_INVALID_ARGUMENT where no values of it are stored. */
    def leaf(name: String): Leaf = {
      val leaf = context.leaf(session, name, context.described(requested, snapshot))
      context.requireValues(leaf, snapshot)
      leaf
    }

    def details(leaf: Leaf): ColumnDetails =
      if (file.isEmpty && snapshot.filesTotal == 0) emptyDetails(leaf)
      else storedDetails(leaf).getOrElse {
        throw context.noStatistics(s" of the column ${leaf.name}", leaf.name)
      }

    /** The details of a leaf; None if only counts are stored, or nothing. */
    def storedDetails(leaf: Leaf): Option[ColumnDetails] =
      if (snapshot.isOnlyCounted(leaf.key)) None
      else file match {
        case None => rows.get(leaf.key).map(tableDetails(leaf, _))
        case Some(row) => fileDetails(leaf, row)
      }

    private def ordinal(leaf: Leaf): Int = snapshot.columns.indexWhere(_.key == leaf.key)

    private def emptyDetails(leaf: Leaf): ColumnDetails = new ColumnDetails(
      context,
      leaf,
      "",
      SummaryRow.withoutRows(ordinal(leaf)),
      snapshot.exact,
      isRequested,
      ordinal(leaf),
      None,
      None,
      Nil,
      None)

    private def tableDetails(leaf: Leaf, row: SummaryRow): ColumnDetails = {
      val lists = snapshot.frequenciesOf(row.column).map(_.ref)
      new ColumnDetails(
        context,
        leaf,
        snapshot.columns(row.column).dataType,
        row,
        snapshot.exact && row.files == snapshot.filesTotal,
        isRequested,
        row.column,
        None,
        snapshot.frequencies.headOption.map(_.ref),
        lists,
        snapshot.histograms,
        Some(snapshot))
    }

    private def fileDetails(leaf: Leaf, file: TableFileRow): Option[ColumnDetails] =
      for {
        summary <- level.columns(Seq(file), Seq(leaf.key)).headOption
        (fileRow, ordinal) <- level.details(file, leaf.key)
      } yield {
        // Frequencies and histograms of one file were written together: its number is the same in both.
        val number = fileRow.frequencies.orElse(fileRow.histograms).map(_.file)
        def objectOf(detail: Option[DetailRef]): Option[ObjectRef] =
          for (stored <- detail if number.contains(stored.file)) yield stored.ref
        val lists = objectOf(fileRow.frequencies)
        new ColumnDetails(
          context,
          leaf,
          summary.column.dataType,
          summary.row,
          file.deletes.isEmpty,
          isRequested,
          ordinal,
          number,
          lists,
          lists.toSeq,
          objectOf(fileRow.histograms))
      }
  }
}
