package org.metastore.spark.sql

import java.util.BitSet

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, Literal}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnLayout, ColumnResolver, FileSets, FilterCompiler}
import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.TableStatistics
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, FileList, FileSetStatistics, TypePromotion
}
import org.metastore.spark.statistics.objects.{FileKey, HistogramRow, Snapshot, SummaryRow}
import org.metastore.spark.statistics.values.{Histogram, LookUps}
import org.metastore.spark.tables.{Catalogs, DataFile, FormatDescription, Leaf, TableFormats}

/**
 * `metastore.layout(table [, column])`: one row for each column, with the spread of its values over the data
 * files, and advice.
 */
object LayoutFunction extends TableFunction("layout") {
  private val AtOnce = 64 // columns

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val context = TableContext.open(session, call.text("table"))
    val current = context.table.current
    val snapshot = context.snapshotWithColumns(current)
    val all = context.table.leaves(current)
    val leaves = context.leavesOf(session, call, all)
    val keys = context.liveFiles(snapshot).map(_.key).toIndexedSeq
    val files = FileList.fromKeys(keys)
    val statistics = context.planning(MetastoreConf().readTimeoutMillis)
    val kept = new KeptValues(context, snapshot)
    val advice = new SortAdvice(session, context, snapshot, statistics, keys)
    val rows = for {
      group <- leaves.grouped(AtOnce)
      known = statistics.forFiles(files, group.map(leaf => leaf.key -> leaf.dataType))
      lookUps = kept.lookUps(group)
      leaf <- group
    } yield row(leaf, known, lookUps.get(leaf.key), advice)
    rows.toList
  }

  private def row(
      leaf: Leaf,
      known: FileSetStatistics,
      kept: Option[LookUps],
      advice: SortAdvice): InternalRow = {
    val described = for {
      column <- known.column(leaf.key, leaf.dataType).toOption
      layout <- ColumnLayout.fromSummary(column)
    } yield describe(leaf, known, column, layout, kept, advice)
    described.getOrElse(ResultRow.row(leaf.name, None, None, None, None, None))
  }

  private def describe(
      leaf: Leaf,
      known: FileSetStatistics,
      column: ColumnSummary,
      layout: ColumnLayout,
      kept: Option[LookUps],
      advice: SortAdvice): InternalRow = {
    val (depth, share) = (layout.overlapDepth, layout.sortedShare)
    kept.orElse(ofBounds(column)) match {
      case None => ResultRow.row(leaf.name, None, depth, share, None, None)
      case Some(values) =>
        val read = filesRead(leaf, known, column, values)
        val (mean, error) = values.average(read.map(_.cardinality))
        val statement = if (share == 1) None else advice.advise(leaf, known, column, values, read)
        ResultRow.row(leaf.name, mean, depth, share, statement, error)
    }
  }

  /** The least and the greatest values of some files, for a column without stored values. */
  private def ofBounds(summary: ColumnSummary): Option[LookUps] = {
    val ends =
      for {
        file <- ColumnLayout.sample(summary, LookUps.Most / 2)
        bounds <- Seq(summary.bounds.los, summary.bounds.his)
      } yield CatalystValue.ordered(bounds, file, summary.dataType)
    Optional.when(ends.nonEmpty)(LookUps.fromValues(ends))
  }

  /** For each value the files that may hold it, of those with statistics. */
  private def filesRead(
      leaf: Leaf,
      known: FileSetStatistics,
      column: ColumnSummary,
      values: LookUps): IndexedSeq[BitSet] = {
    val attribute = AttributeReference(leaf.name, leaf.dataType)()
    val resolver: ColumnResolver = (_, _) => Some(leaf.key)
    values.values.map { value =>
      val condition = EqualTo(attribute, Literal(value, leaf.dataType))
      val verdicts = FilterCompiler.compile(Seq(condition), resolver).evaluate(known)
      FileSets.where(column.length)(file => column.hasStatistics(file) && verdicts.isKept(file))
    }
  }
}

/** The values of columns that an analyzed snapshot stores. */
private final class KeptValues(context: TableContext, snapshot: Snapshot) {
  private val rows: Map[String, SummaryRow] = context.rowsByKey(snapshot)

  /** Values to look up by the columns' keys: all histograms are read at once. */
  def lookUps(leaves: Seq[Leaf]): Map[String, LookUps] = {
    val ordinals = Indexed.set(leaves.flatMap(leaf => rows.get(leaf.key)))(_.column)
    val histograms =
      snapshot.histograms.fold(Map.empty[Int, HistogramRow])(context.store.histograms(_, ordinals))
    val found = for {
      leaf <- leaves
      values <- lookUps(leaf, histograms)
    } yield leaf.key -> values
    found.toMap
  }

  /** Values as Catalyst's internal ones, without texts that may be the beginning of longer ones. */
  private def lookUps(leaf: Leaf, histograms: Map[Int, HistogramRow]): Option[LookUps] = for {
    row <- rows.get(leaf.key)
    entry = snapshot.columns(row.column)
    if TypePromotion.fromEntry(entry, leaf.dataType) == TypePromotion.Full
    stored <- histograms.get(row.column)
    bins <- Histogram.fromRow(stored, row)
    text = ValueText.fromTypes(entry.dataType, leaf.dataType)
    values <- LookUps.fromHistogram(bins).collect { edge =>
      Optional.when(text.isWhole(edge, row))(CatalystValue.catalyst(edge, leaf.dataType))
    }
  } yield values
}

/** Advises to rewrite a table in the order of a column, where look-ups would then read half as many files. */
private final class SortAdvice(
    session: SparkSession,
    context: TableContext,
    snapshot: Snapshot,
    statistics: TableStatistics,
    keys: IndexedSeq[FileKey]) {
  import SortAdvice._

  /** The data files in the order of the keys; None where the table does not list all of them. */
  private lazy val live: Option[IndexedSeq[DataFile]] = {
    val byPath = Indexed.by(context.table.currentFiles)(_.path)
    val files = keys.flatMap(key => byPath.get(key.path))
    Optional.when(files.length == keys.length)(files)
  }

  private lazy val partitions: Seq[Array[Int]] = live.toSeq.flatMap(SortedFiles.partitions)

  /** @param read the files that a look-up of each value reads now */
  def advise(
      leaf: Leaf,
      known: FileSetStatistics,
      column: ColumnSummary,
      values: LookUps,
      read: IndexedSeq[BitSet]): Option[String] = for {
    text <- statement(leaf)
    if values.average(read.map(_.cardinality))._1 >= WorthSorting // one file is read at the least
    files <- live
    described = partitions.map(_.filter(column.hasStatistics(_))).filter(_.nonEmpty)
    if described.exists(_.length > 1)
    key = leaf.key -> leaf.dataType
    histogram <- statistics.histograms(snapshot, Seq(key)).get(key)
    sorted = new SortedFiles(
      List(key -> histogram),
      known,
      files,
      described.size > 1 || described.exists(_.length < files.length))
    if isWorth(values, read, described, sorted)
  } yield text

  private def isWorth(
      values: LookUps,
      read: IndexedSeq[BitSet],
      partitions: Seq[Array[Int]],
      sorted: SortedFiles): Boolean = {
    val (several, lone) = partitions.partition(_.length > 1)
    val unchanged = new BitSet
    for (files <- lone) unchanged.set(files.head)
    var readsNow = 0.0
    var readsSorted = 0.0
    for ((rows, files) <- values.rows.zip(read)) {
      readsNow += rows.toDouble * files.cardinality
      readsSorted += rows.toDouble * FileSets.both(files, unchanged).cardinality
    }
    val most = readsNow / WorthSorting
    // The loop may stop early: once the sum is too large, it stays so.
    for (files <- several if readsSorted <= most) {
      lazy val filesWith = sorted.filesWith(files)
      for (value <- values.values.indices if files.exists(read(value).get(_)))
        readsSorted += values.rows(value).toDouble * math.max(1, filesWith(values.values(value)))
    }
    readsSorted <= most
  }

  private def statement(leaf: Leaf): Option[String] = {
    val isTopLevel = leaf.path.length == 1
    if (!isTopLevel || TableFormats.isLocation(context.name)) None
    else FormatDescription.byName(context.table.format).sortStatement.map { statement =>
      val named = statement.replace("{catalog}", catalogName).replace("{table}", context.name)
      named.replace("{column}", quoted(leaf.path.head))
    }
  }

  private def catalogName: String = {
    val catalogs = Catalogs(session)
    val parts = Try(session.sessionState.sqlParser.parseMultipartIdentifier(context.name)).getOrElse(Nil)
    if (parts.length > 2 && catalogs.isRegistered(parts.head)) parts.head
    else catalogs.current.name
  }

  private def quoted(name: String): String = name match {
    case Plain() => name
    case _ => s"`${name.replace("`", "``")}`"
  }
}

private object SortAdvice {
  private val WorthSorting = 2.0 // times as many files as look-ups in a sorted table read
  private val Plain = "[A-Za-z_][A-Za-z0-9_]*".r
}
