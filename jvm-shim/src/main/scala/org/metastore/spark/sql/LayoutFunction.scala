package org.metastore.spark.sql

import java.util.BitSet

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, Literal}
import org.apache.spark.sql.types.DataType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnLayout, ColumnResolver, FileSets, FilterCompiler}
import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.TableStatistics
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, FileList, FileSetStatistics, TypePromotion
}
import org.metastore.spark.statistics.objects.{FileKey, HistogramRow, Snapshot, SummaryRow}
import org.metastore.spark.statistics.values.{ColumnHistogram, Histogram, LookUps}
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
    val stored = new StoredValues(context, snapshot)
    val advice = new SortAdvice(session, context, snapshot, statistics, keys)
    val rows = for {
      group <- leaves.grouped(AtOnce)
      summaries = statistics.forFiles(files, group.map(leaf => leaf.key -> leaf.dataType))
      lookUps = stored.lookUps(group)
      leaf <- group
    } yield row(leaf, summaries, lookUps.get(leaf.key), advice)
    rows.toList
  }

  private def row(
      leaf: Leaf,
      summaries: FileSetStatistics,
      stored: Option[LookUps],
      advice: SortAdvice): InternalRow = {
    val described = for {
      column <- summaries.column(leaf.key, leaf.dataType).toOption
      layout <- ColumnLayout.fromSummary(column)
    } yield describe(leaf, summaries, column, layout, stored, advice)
    described.getOrElse(ResultRow.row(leaf.name, None, None, None, None, None))
  }

  private def describe(
      leaf: Leaf,
      summaries: FileSetStatistics,
      column: ColumnSummary,
      layout: ColumnLayout,
      stored: Option[LookUps],
      advice: SortAdvice): InternalRow = {
    val (depth, share) = (layout.overlapDepth, layout.sortedShare)
    stored.orElse(boundsAsValues(column)) match {
      case None => ResultRow.row(leaf.name, None, depth, share, None, None)
      case Some(values) =>
        val read = filesRead(leaf, summaries, column, values)
        val lookUps = ColumnLookUps(leaf, summaries, column, values, read)
        val (mean, error) = lookUps.averageFiles
        val statement = if (share == 1) None else advice.advise(lookUps)
        ResultRow.row(leaf.name, mean, depth, share, statement, error)
    }
  }

  /** The least and the greatest values of some files, for a column without stored values. */
  private def boundsAsValues(summary: ColumnSummary): Option[LookUps] = {
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
      summaries: FileSetStatistics,
      column: ColumnSummary,
      values: LookUps): IndexedSeq[BitSet] = {
    val attribute = AttributeReference(leaf.name, leaf.dataType)()
    val resolver: ColumnResolver = (_, _) => Some(leaf.key)
    values.values.map { value =>
      val condition = EqualTo(attribute, Literal(value, leaf.dataType))
      val verdicts = FilterCompiler.compile(Seq(condition), resolver).evaluate(summaries)
      FileSets.where(column.length)(file => column.hasStatistics(file) && verdicts.isKept(file))
    }
  }
}

/** The values of columns that an analyzed snapshot stores. */
private final class StoredValues(context: TableContext, snapshot: Snapshot) {
  private val rows: Map[String, SummaryRow] = context.rowsByKey(snapshot)

  /** Values to look up by the columns' keys: all histograms are read at once. */
  def lookUps(leaves: Seq[Leaf]): Map[String, LookUps] = {
    val ordinals = Indexed.set(leaves.flatMap(leaf => rows.get(leaf.key)))(_.column)
    val histograms =
      snapshot.histograms.fold(Map.empty[Int, HistogramRow])(context.store.histograms(_, ordinals))
    val byKey = for {
      leaf <- leaves
      values <- lookUps(leaf, histograms)
    } yield leaf.key -> values
    byKey.toMap
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

/**
 * Look-ups of values of one column.
 *
 * @param summaries the statistics of the table's data files
 * @param column    the column in these statistics
 * @param read      the files that a look-up of each value reads now
 */
private final case class ColumnLookUps(
    leaf: Leaf,
    summaries: FileSetStatistics,
    column: ColumnSummary,
    values: LookUps,
    read: IndexedSeq[BitSet]) {

  /** The average number of files that a look-up reads, with its error. */
  def averageFiles: (Double, Double) = values.average(read.map(_.cardinality))
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

  /** The statement that sorts the table by a column; None if it is not worth it. */
  def advise(lookUps: ColumnLookUps): Option[String] = {
    val text = statement(lookUps.leaf)
    // A look-up in a sorted table reads one file at the least.
    def readsEnough = lookUps.averageFiles._1 >= WorthSorting
    if (text.isDefined && readsEnough && live.exists(isWorth(lookUps, _))) text
    else None
  }

  /** Whether look-ups would read half as many files if the table were sorted by their column. */
  private def isWorth(lookUps: ColumnLookUps, files: IndexedSeq[DataFile]): Boolean = {
    val described = partitions.map(_.filter(lookUps.column.hasStatistics(_))).filter(_.nonEmpty)
    val isPartitioned = described.size > 1 || described.exists(_.length < files.length)
    if (!described.exists(_.length > 1)) false
    else histogram(lookUps.leaf).exists { column =>
      isWorth(lookUps, described, new SortedFiles(List(column), lookUps.summaries, files, isPartitioned))
    }
  }

  private def histogram(leaf: Leaf): Option[((String, DataType), ColumnHistogram)] = {
    val key = leaf.key -> leaf.dataType
    statistics.histograms(snapshot, Seq(key)).get(key).map(key -> _)
  }

  private def isWorth(
      lookUps: ColumnLookUps,
      partitions: Seq[Array[Int]],
      sorted: SortedFiles): Boolean = {
    val ColumnLookUps(_, _, _, values, read) = lookUps
    val (rewritten, singleFiles) = partitions.partition(_.length > 1)
    val unchanged = new BitSet
    for (files <- singleFiles) unchanged.set(files.head)
    var readNow = 0.0
    var readAfter = 0.0
    for ((rows, files) <- values.rows.zip(read)) {
      readNow += rows.toDouble * files.cardinality
      readAfter += rows.toDouble * FileSets.both(files, unchanged).cardinality
    }
    val mostAfter = readNow / WorthSorting
    // The loop may stop early: once the sum is too large, it stays so.
    for (files <- rewritten if readAfter <= mostAfter) {
      lazy val filesWith = sorted.filesWith(files)
      for (value <- values.values.indices if files.exists(read(value).get(_)))
        readAfter += values.rows(value).toDouble * math.max(1, filesWith(values.values(value)))
    }
    readAfter <= mostAfter
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
