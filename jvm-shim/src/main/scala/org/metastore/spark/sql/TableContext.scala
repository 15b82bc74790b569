package org.metastore.spark.sql

import java.io.IOException

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types._

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Indexed, MetastoreException}
import org.metastore.spark.statistics.{StatisticsStore, TableStatistics}
import org.metastore.spark.statistics.objects.{
  Block, ColumnEntry, DataFileRow, DetailRef, FileKey, HistogramRow, Manifest, ObjectRef, Snapshot,
  SummaryRow, TableFileRow, TableIdentity, ValueCount
}
import org.metastore.spark.statistics.values.Histogram
import org.metastore.spark.tables.{LakeTable, Leaf, TableLookup}

/** A table together with its statistics, for one question. */
final class TableContext private (val name: String, val table: LakeTable, val store: StatisticsStore) {

  /** The newest manifest that belongs to this very table, not to one of the same name that was dropped. */
  lazy val manifest: Option[Manifest] =
    for (manifest <- store.manifest() if manifest.table.uuid == table.uuid)
      yield manifest.under(table.nameMapping)

  /** The snapshot asked for; without `at`, the one that the name points to. `None`: the table was never written. */
  def requestedSnapshot(at: Option[Literal]): Option[String] = at match {
    case None => table.current
    case Some(literal) => Some(snapshotOf(literal).getOrElse(throw unknownSnapshot(literal.toString)))
  }

  /**
   * The analyzed snapshot that answers for the snapshot asked for: itself, else its nearest ancestor. Of ancestors that have
   * expired only the manifest knows: the newest of them is taken.
   */
  def answeringSnapshot(asked: Option[String], holds: Snapshot => Boolean): Option[Snapshot] = {
    val usable = snapshots.filter(holds)
    asked match {
      case None => usable.find(_.id == TableContext.NeverWritten)
      case Some(id) => nearestAncestor(id, usable)
    }
  }

  /** All analyzed snapshots, the oldest first. */
  def snapshots: Seq[Snapshot] = manifest.toSeq.flatMap(_.snapshots)

  private def nearestAncestor(id: String, usable: Seq[Snapshot]): Option[Snapshot] = {
    val byId = Indexed.by(usable)(_.id)
    val ancestor = table.lineage(id).find(byId.contains)
    if (ancestor.isDefined) ancestor.map(byId)
    else if (!table.hasExpiredAncestors(id)) None
    else usable.reverseIterator.find(snapshot => table.hasExpired(snapshot.id))
  }

  /** That statistics are missing, and the statement that makes them. */
  def noStatistics(detail: String = "", columns: String = ""): MetastoreException = {
    val isOurs = name.contains('/') || MetastoreConf().analyzeFormats(table.format)
    val setting = MetastoreConf.AnalyzeFormats.key
    val caveat =
      if (isOurs) ""
      else s" ANALYZE TABLE by its name is Spark's own until $setting has ${table.format}."
    MetastoreException.noStatistics(
      name,
      table.identity.copy(name = name).inStatements,
      detail,
      columns,
      caveat)
  }

  /** As `answeringSnapshot`, raising METASTORE_NO_STATISTICS. */
  def snapshotWithColumns(asked: Option[String]): Snapshot =
    answeringSnapshot(asked, TableContext.hasColumns).getOrElse(throw missing(asked))

  /** ANALYZE reaches the snapshot alone that the name points to: of another one those are named that were analyzed. */
  private def missing(asked: Option[String]): MetastoreException = {
    val detail = " of columns for this snapshot or one that it was made from"
    val usable = for (snapshot <- snapshots if TableContext.hasColumns(snapshot)) yield snapshot.id
    if (asked != table.current && usable.nonEmpty) {
      val named = asked.fold(detail)(id => detail.replace("this snapshot", s"snapshot $id"))
      MetastoreException.snapshotNotAnalyzed(name, named, nearest(asked, usable).take(TableContext.Near))
    } else noStatistics(if (snapshots.nonEmpty) detail else "")
  }

  /** Analyzed snapshots, the nearest first of those that were made from the one asked for, else the newest first. */
  private def nearest(asked: Option[String], analyzed: Seq[String]): Seq[String] = {
    val (since, from) = table.current.iterator.flatMap(table.lineage).span(id => !asked.contains(id))
    val later = since.filter(analyzed.toSet).toList.reverse
    if (later.nonEmpty && from.hasNext) later else analyzed.reverse
  }

  /** Whether an analyzed snapshot is the one that the name now points to. */
  def isCurrent(snapshot: Snapshot): Boolean = isRequested(snapshot, table.current)

  /** Whether an analyzed snapshot is the very one that was asked for, not an ancestor. */
  def isRequested(snapshot: Snapshot, asked: Option[String]): Boolean =
    snapshot.id == asked.getOrElse(TableContext.NeverWritten)

  /** The live data files of the table as the name stands for it: of newer ones than were analyzed nothing is known. */
  def liveFiles(snapshot: Snapshot): Seq[LiveFile] =
    if (isCurrent(snapshot))
      store.tableFiles(snapshot).map(file => LiveFile(file.path, file.key, file.deletes.isEmpty))
    else
      table.currentFiles.map(file => LiveFile(file.path, file.key, file.deletedRows.contains(0L)))

  /**
   * The statistics as the planner asks them.
   *
   * @throws java.io.IOException they cannot be read, or not in time
   */
  def planning(limitMillis: Long): TableStatistics =
    store.planning(table.uuid, limitMillis, nameMapping = table.nameMapping) match {
      case Right(statistics) => statistics
      case Left(why) => throw new IOException(why.sentence)
    }

  /** The histogram of a column of the table, or of one of its data files, that an object holds. */
  def histogram(
      holder: Option[ObjectRef],
      row: SummaryRow,
      column: Int,
      file: Option[Int]): Option[Histogram] =
    for {
      ref <- holder
      stored <- store.histogram(ref, column, file)
      bins <- Histogram.fromRow(stored, row)
    } yield bins

  /** The rows of a snapshot's columns that files tell of, by the columns' keys. */
  def rowsByKey(snapshot: Snapshot): Map[String, SummaryRow] = {
    val known = store.tableSummary(snapshot).filter(_.files > 0)
    Indexed.by(known)(row => snapshot.columns(row.column).key)
  }

  /** The leaves of a snapshot's schema, and the expressions over them that an analyzed one tells of. */
  def described(asked: Option[String], snapshot: Snapshot): IndexedSeq[Leaf] = {
    val expressions =
      for (column <- snapshot.columns if column.isExpression)
        yield Leaf(column.key, column.path, DataType.fromDDL(column.dataType))
    table.leaves(asked) ++ expressions
  }

  /** The leaf that a user calls `column`, names compared as the session compares them. */
  def leaf(session: SparkSession, column: String, among: Seq[Leaf]): Leaf = {
    val same = session.sessionState.conf.resolver
    val parts = Try(session.sessionState.sqlParser.parseMultipartIdentifier(column)).getOrElse(Seq(column))
    val below = among.filter(leaf => leaf.path.take(parts.length).corresponds(parts)(same))
    val sameName =
      below.filter(_.path.length == parts.length) ++ among.filter(leaf => same(leaf.name, column))
    if (sameName.isEmpty) throw noLeaf(column, among, below)
    sameName.head
  }

  /** The leaf that a call names as its `column`, else all of them. */
  def leavesOf(session: SparkSession, call: Arguments, all: IndexedSeq[Leaf]): IndexedSeq[Leaf] =
    call.optional("column").fold(all)(column => IndexedSeq(leaf(session, column, all)))

  private def noLeaf(column: String, among: Seq[Leaf], below: Seq[Leaf]): MetastoreException =
    if (below.isEmpty) MetastoreException.columnNotFound(column, name, among.map(_.name))
    else MetastoreException.invalidArgument(
      "column",
      s"$column is a struct",
      s" Name a field of it, such as ${below.head.name}.")

  private def unknownSnapshot(text: String): MetastoreException =
    if (snapshots.exists(_.id == text)) MetastoreException.invalidArgument(
      "at",
      s"$name no longer has snapshot $text, which was analyzed: it has expired",
      " Its statistics are shown by metastore.open of the location.")
    else MetastoreException.invalidArgument(
      "at",
      s"$name has no snapshot $text",
      analyzed + (if (table.namesSnapshots) TableContext.SnapshotForms else ""))

  private def analyzed: String = {
    val (shown, earlier) = snapshots.map(_.id).reverse.splitAt(TableContext.Shown)
    val more = if (earlier.isEmpty) "" else s" and ${earlier.length} more"
    if (shown.isEmpty) "" else s" Analyzed: ${shown.mkString(", ")}$more."
  }

  private def snapshotOf(literal: Literal): Option[String] = literal.dataType match {
    case ByteType | ShortType | IntegerType | LongType => table.snapshot(literal.toString)
    // Spark would take other numbers for seconds.
    case _: NumericType => None
    case TimestampType | TimestampNTZType | DateType => table.snapshotAt(instant(literal).get)
    case _ =>
      val text = Arguments.cast(literal, StringType).toString
      table.snapshot(text).orElse(instant(literal).flatMap(table.snapshotAt))
  }

  private def instant(literal: Literal): Option[Long] = Arguments.cast(literal, TimestampType) match {
    case micros: Long => Some(micros)
    case _ => None
  }
}

/** A live data file; `isWhole`: all of its rows are live, and no others. */
final case class LiveFile(path: String, key: FileKey, isWhole: Boolean)

object TableContext {

  /** What stands for the snapshot of a table that was never written. */
  val NeverWritten = "none"

  private val SnapshotForms =
    " A snapshot is named by its id or version, a branch or tag, or an instant such as '2026-01-31 12:00:00'."
  private val Shown = 5
  private val Near = 3

  /** Statistics of file lists alone say nothing about columns. */
  private def hasColumns(snapshot: Snapshot): Boolean =
    snapshot.computed != "files" || snapshot.filesTotal == 0

  /** Resolves a name and opens its statistics; reads neither manifest nor objects yet. */
  def open(session: SparkSession, name: String): TableContext =
    open(session, name, TableLookup.resolve(session, name))

  /** Opens the statistics of a table. */
  def open(session: SparkSession, name: String, table: LakeTable): TableContext =
    new TableContext(name, table, store(session, table.identity))

  /** Where the statistics of a table are. */
  def store(session: SparkSession, table: TableIdentity): StatisticsStore =
    StatisticsStore.open(
      table,
      MetastoreConf.fromSession(session).store,
      session.sessionState.newHadoopConf())
}

/** One column in one data file, by the deepest of the blocks that know it. */
final case class FileColumnSummary(file: TableFileRow, column: ColumnEntry, row: SummaryRow)

/** The file level of the statistics, restricted to the live files of one analyzed snapshot. */
final class FileLevel(analyzed: TableContext, snapshot: Snapshot) {

  val files: IndexedSeq[TableFileRow] = analyzed.store.tableFiles(snapshot)

  /** The live data file of a path, or of its last part where that is one file's alone. */
  def find(path: String): TableFileRow = {
    val same = files.filter(_.path == path)
    val candidates = if (same.nonEmpty) same.take(1) else files.filter(_.path.endsWith(s"/$path"))
    if (candidates.length != 1) throw MetastoreException.invalidArgument(
      "file",
      s"$path is no data file of snapshot ${snapshot.id} of ${analyzed.name}")
    candidates.head
  }

  /** What is known of some columns in some of the files, ordered by file, then as the keys are. */
  def columns(of: Seq[TableFileRow], keys: Seq[String]): Seq[FileColumnSummary] = {
    val byKey = Indexed.by(of)(_.key)
    val position = Indexed.places(keys)
    val known = inBlocks(of) { (block, listed) =>
      val byOrdinal = Indexed.by(listed)(_.file)
      val columns = ordinals(block, position.keySet)
      if (listed.isEmpty || columns.isEmpty) Nil
      else analyzed.store.summary(block, Some(columns), Some(byOrdinal.keySet)).map { row =>
        val file = byKey(byOrdinal(row.file.get).key)
        FileColumnSummary(file, block.columns(row.column), row)
      }
    }
    // Later blocks know more: the last row of a column stays.
    val deepest = Indexed.by(known)(one => (one.file.path, one.column.key))
    val order = Indexed.places(of.map(_.path))
    deepest.values.toSeq.sortBy(one => (order(one.file.path), position(one.column.key)))
  }

  /** The most frequent value of each column of a data file, by the column's key. */
  def mostFrequent(of: TableFileRow): Map[String, ValueCount] =
    ofDetails(of, _.frequencies)(detail => analyzed.store.mostFrequent(detail.ref, Some(detail.file)))

  /** The histogram of each column of a data file, by the column's key. */
  def histograms(of: TableFileRow): Map[String, HistogramRow] =
    ofDetails(of, _.histograms)(detail => analyzed.store.histograms(detail.ref, detail.file))

  /** What detail objects tell of the columns of a data file. */
  private def ofDetails[T](
      of: TableFileRow,
      kind: DataFileRow => Option[DetailRef])(read: DetailRef => Map[Int, T]): Map[String, T] =
    inBlocks(Seq(of)) { (block, listed) =>
      for {
        row <- listed
        detail <- kind(row).toSeq
        (column, known) <- read(detail)
      } yield block.columns(column).key -> known
    }.toMap

  /** The row of `files` of the deepest block that knows a column of a data file, and the column's ordinal there. */
  def details(of: TableFileRow, key: String): Option[(DataFileRow, Int)] =
    inBlocks(Seq(of)) { (block, listed) =>
      for {
        ordinal <- ordinals(block, Set(key)).toSeq
        row <- listed
      } yield row -> ordinal
    }.lastOption

  /** How many of some columns have statistics in each file, by path. */
  def columnCounts(of: Seq[TableFileRow], keys: Set[String]): Map[String, Int] = {
    val perBlock = inBlocks(of) { (block, listed) =>
      val known = keysOf(block, Indexed.set(listed)(_.file), keys)
      listed.map(file => file.path -> known(file.file))
    }
    val keysByPath = mutable.Map.empty[String, Set[String]].withDefaultValue(Set.empty)
    for ((path, known) <- perBlock) keysByPath(path) ++= known
    for ((path, known) <- keysByPath.toMap) yield path -> known.size
  }

  /** The columns with a row in a block, by file. Merged blocks may have gaps: only then the rows are read. */
  private def keysOf(block: Block, files: Set[Int], keys: Set[String]): Int => Set[String] = {
    val columns = ordinals(block, keys)
    lazy val all = columns.map(block.columns(_).key) // one set for all files
    if (block.summary.map(_.ref.rows).sum == block.files.rows * block.columns.length) _ => all
    else if (files.isEmpty || columns.isEmpty) _ => Set.empty
    else {
      val keysByFile = mutable.Map.empty[Int, Set[String]].withDefaultValue(Set.empty)
      for (row <- analyzed.store.summary(block, Some(columns), Some(files)))
        keysByFile(row.file.get) += block.columns(row.column).key
      keysByFile
    }
  }

  private def ordinals(block: Block, keys: Set[String]): Set[Int] =
    block.columns.indices.filter(i => keys(block.columns(i).key)).toSet

  /** What blocks tell of some files, from the one that counts least on: `full` after `footer`, earlier after later. */
  private def inBlocks[T](of: Seq[TableFileRow])(read: (Block, Seq[DataFileRow]) => Seq[T]): Seq[T] = {
    val keys = Indexed.set(of)(_.key)
    for {
      computed <- Seq("footer", "full")
      manifest <- analyzed.manifest.toSeq
      block <- manifest.blocks if block.computed == computed
      known <- read(block, analyzed.store.dataFiles(block).filter(file => keys(file.key)))
    } yield known
  }
}
