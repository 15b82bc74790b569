package org.metastore.spark.sql

import java.util.BitSet

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.explain.{ExplainQuery, QueryScans}
import org.metastore.spark.pruning.{
  DeletedRows, EvaluationAllowance, FileSets, FilterCompiler, LimitedFiles, PruningFilter, ScanDecision
}
import org.metastore.spark.reason.{Indexed, MetastoreException, Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.InMemoryStatistics
import org.metastore.spark.statistics.columns.{FileList, FileSetStatistics}
import org.metastore.spark.statistics.values.{ColumnHistogram, SortedRun}
import org.metastore.spark.tables.{DataFile, Leaf}

/**
 * `metastore.whatif(query [, sorted_by] [, statistics])`: one row for each scan, with the number of files
 * that it would read.
 */
object WhatIfFunction extends TableFunction("whatif") {
  private val Name = "(?:`[^`]*`|[^,`])+".r
  private val SortedBy = "sorted_by"
  private val WithStatistics = "statistics"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val imagine = imagination(session, call)
    val scans = ExplainQuery.scans(session, call.text("query"))
    val prospects = scans.decisions.map(imagined(session, scans, _, imagine))
    val mistakes = for (Left(mistake) <- prospects) yield mistake
    if (mistakes.nonEmpty && mistakes.length == prospects.length) throw mistakes.head
    for (((decision, prospect), scan) <- scans.decisions.zip(prospects).zipWithIndex)
      yield row(scan, decision, prospect)
  }

  /** Finds the prospect of a scan for the table that the call describes. */
  private type Imagination = (ScanDecision, TableContext) => Prospect

  private def imagination(session: SparkSession, call: Arguments): Imagination =
    (namesIn(call, SortedBy), namesIn(call, WithStatistics)) match {
      case (Some(names), None) =>
        (decision, table) => new SortedTable(session, table, decision, names).prospect
      case (None, Some(names)) =>
        (decision, table) => Prospect.withStatistics(session, table, decision, names)
      case _ =>
        throw MetastoreException.invalidArgument(
          "metastore.whatif",
          s"give either $SortedBy or $WithStatistics")
    }

  private def row(
      scan: Int,
      decision: ScanDecision,
      imagined: Either[MetastoreException, Prospect]): InternalRow = {
    val prospect = imagined.fold(Prospect.unknown(decision, _), identity)
    val now = Prospect.now(decision)
    val total = if (now.isEmpty) prospect.files else Some(decision.total)
    ResultRow.row(scan, decision.table, total, now, prospect.files, prospect.method, prospect.isExact)
  }

  private def namesIn(call: Arguments, argument: String): Option[List[String]] =
    call.optional(argument).map { text =>
      val names = Name.findAllIn(text).map(_.trim).filter(_.nonEmpty).toList
      if (names.isEmpty) throw MetastoreException.invalidArgument(argument, "no column is named")
      names
    }

  /** The prospect of a scan whose table has statistics, or why there is none. */
  private def imagined(
      session: SparkSession,
      scans: QueryScans,
      decision: ScanDecision,
      imagine: Imagination): Either[MetastoreException, Prospect] =
    try decision.outcome match {
        case Left(reason) if reason.code == ReasonCode.AnsweredByFormat =>
          Right(Prospect(Some(0), reason.sentence, isExact = true))
        case Left(reason) if !Prospect.hadNothingToPruneBy(reason) =>
          Left(MetastoreException.unsupportedTable(decision.table, reason.sentence))
        case _ => scans.tableOf(decision) match {
            case Some(table) => Right(imagine(decision, TableContext.open(session, decision.table, table)))
            case None => Left(MetastoreException.noStatistics(decision.table, decision.table))
          }
      }
    catch { case mistake: MetastoreException => Left(mistake) }
}

/**
 * The number of data files that a scan would read.
 *
 * @param files   None: not known
 * @param method  the source of the number
 * @param isExact whether the number is certain, if files have equally many rows
 */
private final case class Prospect(files: Option[Long], method: String, isExact: Boolean)

private object Prospect {

  /** Whether a scan was not pruned only because there was nothing to choose files by. */
  def hadNothingToPruneBy(reason: Reason): Boolean = nothingToPruneBy.contains(reason.code)

  private val nothingToPruneBy = Set(
    ReasonCode.NoFilter,
    ReasonCode.NothingToPrune,
    ReasonCode.NoStatistics,
    ReasonCode.TopKOverlap,
    ReasonCode.TopKUnknown)

  /** The number of files that a scan reads now, or None if its files were not listed. */
  def now(decision: ScanDecision): Option[Long] = decision.outcome match {
    case Left(reason) if decision.files.length == 0 && reason.code != ReasonCode.AnsweredByFormat => None
    case _ => Some(decision.after.toLong)
  }

  /** The prospect of a scan that failed. A table without the named column would be read as now. */
  def unknown(decision: ScanDecision, error: MetastoreException): Prospect = {
    val files = if (error.code == "METASTORE_COLUMN_NOT_FOUND") now(decision) else None
    Prospect(files, error.getMessage, isExact = false)
  }

  /** The most files that a scan would read with statistics of some columns, before they are computed. */
  def withStatistics(
      session: SparkSession,
      context: TableContext,
      decision: ScanDecision,
      names: List[String]): Prospect = {
    val leaves = context.table.leaves(context.table.current)
    val keys = names.map(context.leaf(session, _, leaves).key)
    val isNamed = decision.question.forall { question =>
      val filter = FilterCompiler.compile(question.conjuncts, question.columns)
      filter.columns.exists(use => keys.contains(use.key))
    }
    val method =
      if (isNamed) "at most: what they exclude is not known before"
      else "no condition of the scan names them"
    val files = now(decision).getOrElse(context.table.currentFiles.size.toLong)
    Prospect(Some(files), method, isExact = false)
  }
}

/**
 * A table as if the rows of each partition were sorted into as many files, with equally many rows each.
 *
 * A scan's filter is evaluated for these files. Their statistics are the runs of the columns that sort them.
 * A condition that now excludes every file of a partition excludes these files, too.
 */
private final class SortedTable(
    session: SparkSession,
    context: TableContext,
    decision: ScanDecision,
    names: List[String]) {
  private val table = context.table
  private val question = decision.question.getOrElse(throw context.noStatistics())
  private val settings = MetastoreConf.fromSession(session)
  private val leaves = table.leaves(table.current)
  private val sortedBy: List[Leaf] = names.map(context.leaf(session, _, leaves))
  private val snapshot = context.snapshotWithColumns(table.current)
  private val statistics = context.planning(settings.readTimeoutMillis)
  private val filter = compile(question.conjuncts.indices)
  private val live: IndexedSeq[DataFile] = table.currentFiles.toIndexedSeq

  private val columns: List[(String, DataType)] = sortedBy.map { leaf =>
    leaf.key -> filter.columns.find(_.key == leaf.key).fold(leaf.dataType)(_.dataType)
  }

  private val statisticsNow: FileSetStatistics =
    statistics.forFiles(FileList.fromKeys(live.map(_.key)), filter.columnKeys ++ columns)

  private val histograms: List[ColumnHistogram] = {
    val stored = statistics.histograms(snapshot, columns)
    if (!stored.contains(columns.head)) {
      val name = sortedBy.head.name
      throw context.noStatistics(s" of the values of the column $name", name)
    }
    columns.takeWhile(stored.contains).map(stored)
  }

  /** The files of each partition that the scan may read. */
  private val partitions: Seq[Array[Int]] = {
    val groups = SortedFiles.partitions(live)
    val remaining = decision.files.paths.toSet
    for (files <- groups if groups.size < 2 || files.exists(file => remaining(live(file).path)))
      yield files
  }

  private val isPartitioned = partitions.size > 1 || partitions.exists(_.length < live.length)
  private val sorted = new SortedFiles(columns.zip(histograms), statisticsNow, live, isPartitioned)

  def prospect: Prospect = {
    val sortedKeys = columns.map(_._1)
    val unsorted = for (use <- filter.columns if !sortedKeys.contains(use.key)) yield use.name
    val source = if (histograms.head.isComplete) "value counts" else "histogram"
    val remark = if (unsorted.isEmpty) "" else s", ${unsorted.mkString(", ")} in no order"
    val isExact = histograms.head.isComplete && !isPartitioned &&
      filter.columns.forall(_.key == sortedKeys.head) && isWhole &&
      question.wanted.isEmpty && !decision.isAnswered
    Prospect(Some(filesRead), s"$source of ${sortedBy.head.name}$remark", isExact)
  }

  /** Whether the counts of values are those of the rows that would be written. */
  private def isWhole: Boolean =
    if (!context.isCurrent(snapshot) || !snapshot.exact) false
    else statistics.distinct(snapshot) match {
      case Right(counts) => counts.get(columns.head._1).exists(_.files == live.length)
      case Left(_) => false
    }

  private def filesRead: Long = {
    // A LIMIT and an aggregate look at all files together.
    val isFiltered = question.wanted.isEmpty && !decision.isAnswered
    val (singleFiles, rewritten) = if (isFiltered) partitions.partition(_.length == 1) else (Nil, partitions)
    countRead(singleFiles) + countReadAfterRewrite(rewritten)
  }

  /** The files that the scan reads of partitions with one file, which stays as it is. */
  private def countRead(singleFiles: Seq[Array[Int]]): Long = {
    val verdicts = filter.evaluate(statisticsNow)
    singleFiles.count(files => verdicts.isKept(files.head)).toLong
  }

  /** The files that the scan would read of partitions whose rows are sorted. */
  private def countReadAfterRewrite(partitions: Seq[Array[Int]]): Long = {
    val runs = notExcluded(partitions).flatMap(sorted.runs)
    val files = asStatistics(runs)
    val verdicts = filter.evaluate(files)
    val read = FileSets.where(runs.size)(verdicts.isKept)
    lazy val full = filter.allRowsMatch(files)
    val readByAggregate = if (decision.isAnswered) countReadByAggregate(read, full) else None
    readByAggregate.getOrElse {
      FileSets.without(read, droppedByLimit(files, read, full)).cardinality.toLong
    }
  }

  /**
   * The files that an aggregate reads if statistics answer all files, or at least half of them; else None.
   */
  private def countReadByAggregate(read: BitSet, full: BitSet): Option[Long] = {
    val unanswered = FileSets.without(read, full).cardinality
    val answered = read.cardinality - unanswered
    val isAnsweredInPart = decision.after > 0 && answered >= unanswered
    Optional.when(unanswered == 0 || isAnsweredInPart)(unanswered.toLong)
  }

  /** The partitions that no condition of the filter excludes as a whole. */
  private def notExcluded(partitions: Seq[Array[Int]]): Seq[Array[Int]] = {
    val conditions =
      for {
        i <- question.conjuncts.indices
        conjunct = compile(Seq(i)) if conjunct.columns.nonEmpty
      } yield conjunct.evaluate(statisticsNow)
    partitions.filter(files => conditions.forall(verdicts => files.exists(verdicts.isKept)))
  }

  private def droppedByLimit(files: InMemoryStatistics, read: BitSet, full: => BitSet): BitSet = {
    val limited = question.wanted.flatMap(LimitedFiles.by(_, files, read, read, full, _ => DeletedRows.Zero))
    limited.fold(new BitSet)(_.dropped)
  }

  private def compile(conjuncts: Seq[Int]): PruningFilter =
    FilterCompiler.compile(
      conjuncts.map(question.conjuncts(_)),
      question.columns,
      new EvaluationAllowance(settings.maxEvaluations))

  private def asStatistics(files: Seq[List[SortedRun]]): InMemoryStatistics = {
    def byColumn[T](get: SortedRun => Option[T]) = {
      Indexed.entries(columns.zipWithIndex) { case (column, i) =>
        column -> files.map(_.lift(i).flatMap(get)).toIndexedSeq
      }
    }
    val rows = files.map(_.head.summary.rows).toArray
    new InMemoryStatistics(rows, byColumn(run => Some(run.summary)), byColumn(_.listed))
  }
}
