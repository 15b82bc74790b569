package org.metastore.spark.sql

import java.util.BitSet

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, Literal}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnLayout, ColumnResolver, FileSets, FilterCompiler}
import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.TableStatistics
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, FileList, FileSetStatistics, TypePromotion
}
import org.metastore.spark.statistics.objects.{FileKey, Snapshot, SummaryRow}
import org.metastore.spark.statistics.values.LookUps
import org.metastore.spark.tables.{Catalogs, DataFile, FormatDescription, Leaf, TableFormats}

/** `metastore.layout(table [, column])`: one row a column, how its values are spread over the data files and what would help. */
object LayoutFunction extends TableFunction("layout") {
  private val AtOnce = 64 // columns

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.open(session, call.text("table"))
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val all = analyzed.table.leaves(current)
    val leaves = analyzed.leavesOf(session, call, all)
    val keys = analyzed.liveFiles(snapshot).map(_.key).toIndexedSeq
    val files = FileList.fromKeys(keys)
    val statistics = analyzed.planning(MetastoreConf().readTimeoutMillis)
    val kept = new KeptValues(analyzed, snapshot)
    val advice = new SortAdvice(session, analyzed, snapshot, statistics, keys)
    val rows = for {
      group <- leaves.grouped(AtOnce)
      known = statistics.forFiles(files, group.map(leaf => leaf.key -> leaf.dataType))
      leaf <- group
    } yield row(leaf, known, kept, advice)
    rows.toList
  }

  private def row(leaf: Leaf, known: FileSetStatistics, kept: KeptValues, advice: SortAdvice): InternalRow = {
    val summary = known.column(leaf.key, leaf.dataType).toOption
    val layout = summary.flatMap(ColumnLayout.fromSummary)
    val cells = for {
      column <- summary
      spread <- layout
      values <- kept.lookUps(leaf).orElse(ofBounds(column))
    } yield {
      val read = filesRead(leaf, known, column, values)
      val (mean, error) = values.average(read.map(_.cardinality))
      val statement =
        if (spread.sortedShare == 1) None
        else advice.advise(leaf, known, column, values, read)
      ResultRow.row(leaf.name, mean, spread.overlapDepth, spread.sortedShare, statement, error)
    }
    cells.getOrElse {
      ResultRow.row(leaf.name, None, layout.map(_.overlapDepth), layout.map(_.sortedShare), None, None)
    }
  }

  /** The least and the greatest values of some files: all that is known where no values are kept. */
  private def ofBounds(summary: ColumnSummary): Option[LookUps] = {
    val ends =
      for {
        file <- ColumnLayout.sample(summary, LookUps.Most / 2)
        bounds <- Seq(summary.bounds.los, summary.bounds.his)
      } yield CatalystValue.ordered(bounds, file, summary.dataType)
    if (ends.isEmpty) None else Some(LookUps.fromValues(ends))
  }

  /** The files of which something is known that may hold each of some values, by all that is known. */
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

/** What an analyzed snapshot keeps of the values of its columns. */
private final class KeptValues(analyzed: TableContext, snapshot: Snapshot) {
  private val rows: Map[String, SummaryRow] = analyzed.rowsByKey(snapshot)

  /** Values to look up, as Catalyst's internal ones; a text that may be the beginning of longer ones is none. */
  def lookUps(leaf: Leaf): Option[LookUps] = for {
    row <- rows.get(leaf.key)
    entry = snapshot.columns(row.column)
    if TypePromotion.fromEntry(entry, leaf.dataType) == TypePromotion.Full
    bins <- analyzed.histogram(snapshot.histograms, row, row.column, file = None)
    text = ValueText.fromTypes(entry.dataType, leaf.dataType)
    found <- LookUps.ofRows(bins).collect { edge =>
      if (text.isWhole(edge, row)) Some(CatalystValue.catalyst(edge, leaf.dataType))
      else None
    }
  } yield found
}

/** The statement that rewrites a table in the order of a column, as its format has it, where look-ups read half as many files then. */
private final class SortAdvice(
    session: SparkSession,
    analyzed: TableContext,
    snapshot: Snapshot,
    statistics: TableStatistics,
    keys: IndexedSeq[FileKey]) {
  import SortAdvice._

  /** The data files in the order of the keys; None where the table does not tell of all of them. */
  private lazy val live: Option[IndexedSeq[DataFile]] = {
    val byPath = Indexed.by(analyzed.table.currentFiles)(_.path)
    val files = keys.flatMap(key => byPath.get(key.path))
    if (files.length == keys.length) Some(files) else None
  }

  private lazy val partitions: Seq[Array[Int]] =
    for {
      files <- live.toSeq
      places <- files.indices.groupBy(files(_).partition).values
    } yield places.toArray

  /** @param read the files that each of the values reads now */
  def advise(
      leaf: Leaf,
      known: FileSetStatistics,
      column: ColumnSummary,
      values: LookUps,
      read: IndexedSeq[BitSet]): Option[String] = for {
    text <- statement(leaf)
    if values.average(read.map(_.cardinality))._1 >= WorthSorting // one file is read at the least
    files <- live
    told = partitions.map(_.filter(column.hasStatistics(_))).filter(_.nonEmpty)
    if told.exists(_.length > 1)
    key = leaf.key -> leaf.dataType
    histogram <- statistics.histograms(snapshot, Seq(key)).get(key)
    sorted = new SortedFiles(
      List(key -> histogram),
      known,
      files,
      told.size > 1 || told.exists(_.length < files.length))
    if isWorth(values, read, told, sorted)
  } yield text

  private def isWorth(
      values: LookUps,
      read: IndexedSeq[BitSet],
      partitions: Seq[Array[Int]],
      sorted: SortedFiles): Boolean = {
    val (several, lone) = partitions.partition(_.length > 1)
    val unchanged = new BitSet
    for (files <- lone) unchanged.set(files.head)
    var (readsNow, reads) = (0.0, 0.0)
    for ((rows, files) <- values.rows.zip(read)) {
      readsNow += rows.toDouble * files.cardinality
      reads += rows.toDouble * FileSets.both(files, unchanged).cardinality
    }
    val most = readsNow / WorthSorting
    for (files <- several.iterator.takeWhile(_ => reads <= most)) {
      lazy val filesWith = sorted.filesWith(files)
      for (value <- values.values.indices if files.exists(read(value).get(_)))
        reads += values.rows(value).toDouble * math.max(1, filesWith(values.values(value)))
    }
    reads <= most
  }

  private def statement(leaf: Leaf): Option[String] = {
    val isTopLevel = leaf.path.length == 1
    if (!isTopLevel || TableFormats.isLocation(analyzed.name)) None
    else FormatDescription.byName(analyzed.table.format).sortStatement.map { statement =>
      val named = statement.replace("{catalog}", catalogName).replace("{table}", analyzed.name)
      named.replace("{column}", quoted(leaf.path.head))
    }
  }

  private def catalogName: String = {
    val catalogs = Catalogs(session)
    val parts = Try(session.sessionState.sqlParser.parseMultipartIdentifier(analyzed.name)).getOrElse(Nil)
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
