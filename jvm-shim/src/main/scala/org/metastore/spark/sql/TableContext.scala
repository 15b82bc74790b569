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

  /**
   * The requested snapshot; without `at`, the one that the name points to. `None`: the table was never
   * written.
   */
  def requestedSnapshot(at: Option[Literal]): Option[String] = at match {
    case None => table.current
    case Some(literal) => Some(snapshotOf(literal).getOrElse(throw unknownSnapshot(literal.toString)))
  }

  /**
   * The analyzed snapshot that answers for the requested one: itself, else its nearest ancestor. The table
   * does not know expired ancestors any more: the newest expired snapshot of the manifest is taken.
   */
  def answeringSnapshot(requested: Option[String], isUsable: Snapshot => Boolean): Option[Snapshot] = {
    val usable = snapshots.filter(isUsable)
    requested match {
      case None => usable.find(_.id == TableContext.NeverWritten)
      case Some(id) => nearestAncestor(id, usable)
    }
  }

  /** All analyzed snapshots, the oldest first. */
  def snapshots: Seq[Snapshot] = manifest.toSeq.flatMap(_.snapshots)

  private def nearestAncestor(id: String, usable: Seq[Snapshot]): Option[Snapshot] = {
    val byId = Indexed.by(usable)(_.id)
    val analyzed = Indexed.first(table.lineage(id).flatMap(byId.get(_)))
    if (analyzed.isDefined) analyzed
    else if (!table.hasExpiredAncestors(id)) None
    else usable.reverseIterator.find(snapshot => table.hasExpired(snapshot.id))
  }

  /** The error that statistics are missing, with the statement that computes them. */
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

  /**
   * The answering snapshot that has statistics of columns. Raises METASTORE_NO_STATISTICS if there is none.
   */
  def snapshotWithColumns(requested: Option[String]): Snapshot =
    answeringSnapshot(requested, TableContext.hasColumns).getOrElse(throw missing(requested))

  // ANALYZE reads only the snapshot that the name points to: for another one the error lists analyzed
  // snapshots.
  private def missing(requested: Option[String]): MetastoreException = {
    val usable = for (snapshot <- snapshots if TableContext.hasColumns(snapshot)) yield snapshot.id
    def detail(subject: String) = s" of columns for $subject or one that it was made from"
    if (requested != table.current && usable.nonEmpty) {
      val subject = requested.fold("this snapshot")(id => s"snapshot $id")
      val near = nearest(requested, usable).take(TableContext.Near)
      MetastoreException.snapshotNotAnalyzed(name, detail(subject), near)
    } else noStatistics(if (snapshots.nonEmpty) detail("this snapshot") else "")
  }

  /**
   * Analyzed snapshots: those after the requested one, the nearest first; if there are none, all, newest
   * first.
   */
  private def nearest(requested: Option[String], analyzed: Seq[String]): Seq[String] = {
    val (since, from) = table.current.iterator.flatMap(table.lineage).span(id => !requested.contains(id))
    val later = since.filter(analyzed.toSet).toList.reverse
    if (later.nonEmpty && from.hasNext) later else analyzed.reverse
  }

  /** Whether an analyzed snapshot is the one that the name now points to. */
  def isCurrent(snapshot: Snapshot): Boolean = isRequested(snapshot, table.current)

  /** Whether an analyzed snapshot is the requested one itself, not an ancestor. */
  def isRequested(snapshot: Snapshot, requested: Option[String]): Boolean =
    snapshot.id == requested.getOrElse(TableContext.NeverWritten)

  /** The table's live data files. Files that are newer than the snapshot have no statistics. */
  def liveFiles(snapshot: Snapshot): Seq[LiveFile] =
    if (isCurrent(snapshot))
      store.tableFiles(snapshot).map(file => LiveFile(file.path, file.key, file.deletes.isEmpty))
    else
      table.currentFiles.map(file => LiveFile(file.path, file.key, file.deletedRows.contains(0L)))

  /**
   * The statistics as the planner reads them.
   *
   * @throws java.io.IOException they cannot be read, or not in time
   */
  def planning(limitMillis: Long): TableStatistics =
    store.planning(table.uuid, limitMillis, nameMapping = table.nameMapping) match {
      case Right(statistics) => statistics
      case Left(reason) => throw new IOException(reason.sentence)
    }

  /** The histogram of a column of the table, or of one of its data files, that an object stores. */
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

  /** The summary rows of a snapshot's columns that some file has statistics of, by the columns' keys. */
  def rowsByKey(snapshot: Snapshot): Map[String, SummaryRow] = {
    val rows = store.tableSummary(snapshot).filter(_.files > 0)
    Indexed.by(rows)(row => snapshot.columns(row.column).key)
  }

  /**
   * The leaves of the requested snapshot's schema, and the expressions that an analyzed one has statistics
   * of.
   */
  def described(requested: Option[String], snapshot: Snapshot): IndexedSeq[Leaf] = {
    val expressions =
      for (column <- snapshot.columns if column.isExpression)
        yield Leaf(column.key, column.path, DataType.fromDDL(column.dataType))
    table.leaves(requested) ++ expressions
  }

  /** The leaf that a user calls `column`, names compared as the session compares them. */
  def leaf(session: SparkSession, column: String, leaves: Seq[Leaf]): Leaf = {
    val same = session.sessionState.conf.resolver
    val parts = Try(session.sessionState.sqlParser.parseMultipartIdentifier(column)).getOrElse(Seq(column))
    val below = leaves.filter(_.path.take(parts.length).corresponds(parts)(same))
    val byPath = below.find(_.path.length == parts.length)
    val leaf = byPath.orElse(leaves.find(leaf => same(leaf.name, column)))
    leaf.getOrElse(throw noLeaf(column, leaves, below))
  }

  /** Raises METASTORE_INVALID_ARGUMENT for a column whose values a snapshot does not store. */
  def requireValues(leaf: Leaf, snapshot: Snapshot): Unit =
    if (snapshot.isOnlyCounted(leaf.key))
      throw MetastoreException.invalidArgument(
        "column",
        s"of ${leaf.name}, ${leaf.dataType.simpleString}, only counts are kept")

  /** The leaf that a call names as its `column`, else all of them. */
  def leavesOf(session: SparkSession, call: Arguments, all: IndexedSeq[Leaf]): IndexedSeq[Leaf] =
    call.optional("column").fold(all)(column => IndexedSeq(leaf(session, column, all)))

  private def noLeaf(column: String, leaves: Seq[Leaf], below: Seq[Leaf]): MetastoreException =
    if (below.isEmpty) MetastoreException.columnNotFound(column, name, leaves.map(_.name))
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
      listAnalyzed + (if (table.namesSnapshots) TableContext.SnapshotForms else ""))

  private def listAnalyzed: String = {
    val (latest, earlier) = snapshots.map(_.id).reverse.splitAt(TableContext.Shown)
    val more = if (earlier.isEmpty) "" else s" and ${earlier.length} more"
    if (latest.isEmpty) "" else s" Analyzed: ${latest.mkString(", ")}$more."
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

  private def instant(literal: Literal): Option[Long] =
    Arguments.cast(literal, TimestampType) match {
      case micros: Long =>
        Some(micros)
      case _ => None
    }
}

/** A live data file; `isWhole` if all of its rows are live, and no rows of log files. */
final case class LiveFile(path: String, key: FileKey, isWhole: Boolean)

object TableContext {

  /** The id in place of a snapshot of a table that was never written. */
  val NeverWritten = "none"

  private val SnapshotForms =
    " A snapshot is named by its id or version, a branch or tag, or an instant such as '2026-01-31 12:00:00'."
  private val Shown = 5
  private val Near = 3

  /** Whether a snapshot has statistics of columns: one that lists only its files has none. */
  private def hasColumns(snapshot: Snapshot): Boolean =
    snapshot.computed != "files" || snapshot.filesTotal == 0

  /** Resolves a name and opens its statistics; reads neither manifest nor objects yet. */
  def open(session: SparkSession, name: String): TableContext =
    open(session, name, TableLookup.resolve(session, name))

  /** Opens the statistics of a table. */
  def open(session: SparkSession, name: String, table: LakeTable): TableContext =
    new TableContext(name, table, store(session, table.identity))

  /** The stored statistics of a table. */
  def store(session: SparkSession, table: TableIdentity): StatisticsStore =
    StatisticsStore.open(
      table,
      MetastoreConf.fromSession(session).store,
      session.sessionState.newHadoopConf())
}

/** The summary of one column of one data file, from the most detailed block that has it. */
final case class FileColumnSummary(file: TableFileRow, column: ColumnEntry, row: SummaryRow)

/** The file level of the statistics, restricted to the live files of one analyzed snapshot. */
final class FileLevel(context: TableContext, snapshot: Snapshot) {

  val files: IndexedSeq[TableFileRow] = context.store.tableFiles(snapshot)

  /** The live data file of a path, or of its last part where one file alone has it. */
  def find(path: String): TableFileRow = {
    val byPath = files.find(_.path == path)
    byPath.getOrElse {
      files.filter(_.path.endsWith(s"/$path")) match {
        case Seq(only) => only
        case _ => throw MetastoreException.invalidArgument(
            "file",
            s"$path is no data file of snapshot ${snapshot.id} of ${context.name}")
      }
    }
  }

  /** The summaries of some columns in some of the files, ordered by file, then as the keys are. */
  def columns(rows: Seq[TableFileRow], keys: Seq[String]): Seq[FileColumnSummary] = {
    val byKey = Indexed.by(rows)(_.key)
    val position = Indexed.places(keys)
    val summaries = inBlocks(rows) { (block, listed) =>
      val byOrdinal = Indexed.by(listed)(_.file)
      val columns = ordinals(block, position.keySet)
      if (listed.isEmpty || columns.isEmpty) Nil
      else context.store.summary(block, Some(columns), Some(byOrdinal.keySet)).map { row =>
        val file = byKey(byOrdinal(row.file.get).key)
        FileColumnSummary(file, block.columns(row.column), row)
      }
    }
    // Later blocks know more: the last row of a column stays.
    val deepest = Indexed.by(summaries)(summary => (summary.file.path, summary.column.key))
    val order = Indexed.places(rows.map(_.path))
    deepest.values.toSeq.sortBy(summary => (order(summary.file.path), position(summary.column.key)))
  }

  /** The most frequent value of each column of a data file, by the column's key. */
  def mostFrequent(file: TableFileRow): Map[String, ValueCount] =
    readDetails(file, _.frequencies)(detail => context.store.mostFrequent(detail.ref, Some(detail.file)))

  /** The histogram of each column of a data file, by the column's key. */
  def histograms(file: TableFileRow): Map[String, HistogramRow] =
    readDetails(file, _.histograms)(detail => context.store.histograms(detail.ref, detail.file))

  /** Reads a kind of details of the columns of a data file, by the column's key. */
  private def readDetails[T](
      file: TableFileRow,
      kind: DataFileRow => Option[DetailRef])(read: DetailRef => Map[Int, T]): Map[String, T] = {
    val details = inBlocks(Seq(file)) { (block, listed) =>
      for {
        row <- listed
        detail <- kind(row).toSeq
        (column, value) <- read(detail)
      } yield block.columns(column).key -> value
    }
    details.toMap
  }

  /**
   * The row of `files` of the most detailed block with a column of a data file, and the column's ordinal
   * there.
   */
  def details(file: TableFileRow, key: String): Option[(DataFileRow, Int)] =
    inBlocks(Seq(file)) { (block, listed) =>
      for {
        ordinal <- ordinals(block, Set(key)).toSeq
        row <- listed
      } yield row -> ordinal
    }.lastOption

  /** The number of columns with statistics in each file, by path. */
  def columnCounts(rows: Seq[TableFileRow], keys: Set[String]): Map[String, Int] = {
    val perBlock = inBlocks(rows) { (block, listed) =>
      val keysInBlock = keysOf(block, Indexed.set(listed)(_.file), keys)
      listed.map(file => file.path -> keysInBlock(file.file))
    }
    val keysByPath = mutable.Map.empty[String, Set[String]].withDefaultValue(Set.empty)
    for ((path, fileKeys) <- perBlock) keysByPath(path) ++= fileKeys
    for ((path, fileKeys) <- keysByPath.toMap) yield path -> fileKeys.size
  }

  /** The columns with a row in a block, by file. Merged blocks may have gaps: only then the rows are read. */
  private def keysOf(block: Block, files: Set[Int], keys: Set[String]): Int => Set[String] = {
    val columns = ordinals(block, keys)
    lazy val all = columns.map(block.columns(_).key) // one set for all files
    if (block.summary.map(_.ref.rows).sum == block.files.rows * block.columns.length) _ => all
    else if (files.isEmpty || columns.isEmpty) _ => Set.empty
    else {
      val keysByFile = mutable.Map.empty[Int, Set[String]].withDefaultValue(Set.empty)
      for (row <- context.store.summary(block, Some(columns), Some(files)))
        keysByFile(row.file.get) += block.columns(row.column).key
      keysByFile
    }
  }

  private def ordinals(block: Block, keys: Set[String]): Set[Int] =
    block.columns.indices.filter(i => keys(block.columns(i).key)).toSet

  /**
   * Reads the blocks of some files: `footer` before `full`, which is more detailed, and in the manifest's
   * order.
   */
  private def inBlocks[T](rows: Seq[TableFileRow])(read: (Block, Seq[DataFileRow]) => Seq[T]): Seq[T] = {
    val keys = Indexed.set(rows)(_.key)
    for {
      computed <- Seq("footer", "full")
      manifest <- context.manifest.toSeq
      block <- manifest.blocks if block.computed == computed
      result <- read(block, context.store.dataFiles(block).filter(file => keys(file.key)))
    } yield result
  }
}
