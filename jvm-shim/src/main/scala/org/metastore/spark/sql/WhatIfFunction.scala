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
import org.metastore.spark.reason.{Indexed, MetastoreException, Reason, ReasonCode}
import org.metastore.spark.statistics.InMemoryStatistics
import org.metastore.spark.statistics.columns.{FileList, FileSetStatistics}
import org.metastore.spark.statistics.values.{ColumnHistogram, SortedRun}
import org.metastore.spark.tables.{DataFile, Leaf}

/** `metastore.whatif(query [, sorted_by] [, statistics])`: one row a scan, how many files it would read then. */
object WhatIfFunction extends TableFunction("whatif") {
  private val Name = "(?:`[^`]*`|[^,`])+".r
  private val SortedBy = "sorted_by"
  private val WithStatistics = "statistics"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val imagine: (ScanDecision, TableContext) => Prospect =
      (columns(call, SortedBy), columns(call, WithStatistics)) match {
        case (Some(names), None) =>
          (decision, table) => new SortedTable(session, table, decision, names).prospect
        case (None, Some(names)) =>
          (decision, table) => Prospect.withStatistics(session, table, decision, names)
        case _ => throw MetastoreException.invalidArgument(
            "metastore.whatif",
            s"give either $SortedBy or $WithStatistics")
      }
    val scans = ExplainQuery.scans(session, call.text("query"))
    val prospects = scans.decisions.map(decision => imagined(session, scans, decision)(imagine(decision, _)))
    val mistakes = prospects.flatMap(_.left.toSeq)
    if (mistakes.nonEmpty && mistakes.length == prospects.length) throw mistakes.head
    prospects.indices.map { scan =>
      val decision = scans.decisions(scan)
      val prospect = prospects(scan).fold(Prospect.unknown(decision, _), identity)
      val now = Prospect.now(decision)
      val total = if (now.isEmpty) prospect.files else Some(decision.total)
      ResultRow.row(scan, decision.table, total, now, prospect.files, prospect.method, prospect.isExact)
    }
  }

  private def columns(call: Arguments, argument: String): Option[List[String]] =
    call.optional(argument).map { text =>
      val names = Name.findAllIn(text).map(_.trim).filter(_.nonEmpty).toList
      if (names.isEmpty) throw MetastoreException.invalidArgument(argument, "no column is named")
      names
    }

  /** What is imagined of a scan of which there are statistics, or why it cannot be. */
  private def imagined(session: SparkSession, scans: QueryScans, decision: ScanDecision)(
      imagine: TableContext => Prospect): Either[MetastoreException, Prospect] =
    try decision.outcome match {
        case Left(why) if why.code == ReasonCode.AnsweredByFormat =>
          Right(Prospect(Some(0), why.sentence, isExact = true))
        case Left(why) if !Prospect.isPlain(why) =>
          Left(MetastoreException.unsupportedTable(decision.table, why.sentence))
        case _ =>
          val table = scans.tableOf(decision).map(TableContext.open(session, decision.table, _))
          table.map(imagine).toRight(MetastoreException.noStatistics(decision.table, decision.table))
      }
    catch { case mistake: MetastoreException => Left(mistake) }
}

/**
 * How many data files a scan would read.
 *
 * @param files   None: not known
 * @param method  how that is known
 * @param isExact whether it is certain, where files have equally many rows
 */
private final case class Prospect(files: Option[Long], method: String, isExact: Boolean)

private object Prospect {

  /** Whether a scan is not left alone, or would not be if there were something to go by. */
  def isPlain(why: Reason): Boolean = plain.contains(why.code)

  private val plain = Set(
    ReasonCode.NoFilter,
    ReasonCode.NothingToPrune,
    ReasonCode.NoStatistics,
    ReasonCode.TopKOverlap,
    ReasonCode.TopKUnknown)

  /** The files that a scan reads now; None where it was left alone before they were known. */
  def now(decision: ScanDecision): Option[Long] =
    if (decision.files.length > 0 || decision.outcome.fold(_.code == ReasonCode.AnsweredByFormat, _ => true))
      Some(decision.after.toLong)
    else None

  /** Of a table that has no column of that name nothing is changed. */
  def unknown(decision: ScanDecision, why: MetastoreException): Prospect = {
    val files = if (why.code == "METASTORE_COLUMN_NOT_FOUND") now(decision) else None
    Prospect(files, why.getMessage, isExact = false)
  }

  /** Nobody knows what statistics will tell before they are made, but that they never make a scan read more files than there are. */
  def withStatistics(
      session: SparkSession,
      analyzed: TableContext,
      decision: ScanDecision,
      names: List[String]): Prospect = {
    val leaves = analyzed.table.leaves(analyzed.table.current)
    val keys = names.map(analyzed.leaf(session, _, leaves).key)
    val isNamed = decision.question.forall { question =>
      val filter = FilterCompiler.compile(question.conjuncts, question.columns)
      filter.columns.exists(use => keys.contains(use.key))
    }
    val why =
      if (isNamed) "at most: what they exclude is not known before"
      else "no condition of the scan names them"
    val files = now(decision).getOrElse(analyzed.table.currentFiles.size.toLong)
    Prospect(Some(files), why, isExact = false)
  }
}

/**
 * The data files of a table as if its rows were sorted, those of each partition by themselves, into as many files of equally many
 * rows as there are, asked what a scan asks. Beside the order of the columns by which they are sorted no more is taken to be known of
 * these files than that no row matches a condition that excludes each of the files as they are.
 */
private final class SortedTable(
    session: SparkSession,
    analyzed: TableContext,
    decision: ScanDecision,
    names: List[String]) {
  private val table = analyzed.table
  private val asked = decision.question.getOrElse(throw analyzed.noStatistics())
  private val settings = MetastoreConf.fromSession(session)
  private val leaves = table.leaves(table.current)
  private val sortedBy: List[Leaf] = names.map(analyzed.leaf(session, _, leaves))
  private val snapshot = analyzed.snapshotWithColumns(table.current)
  private val statistics = analyzed.planning(settings.readTimeoutMillis)
  private val filter = compile(asked.conjuncts.indices)
  private val live: IndexedSeq[DataFile] = table.currentFiles.toIndexedSeq

  private val columns: List[(String, DataType)] = sortedBy.map { leaf =>
    leaf.key -> filter.columns.find(_.key == leaf.key).fold(leaf.dataType)(_.dataType)
  }

  private val known: FileSetStatistics =
    statistics.forFiles(FileList.fromKeys(live.map(_.key)), filter.columnKeys ++ columns)

  private val histograms: List[ColumnHistogram] = {
    val found = statistics.histograms(snapshot, columns)
    if (!found.contains(columns.head)) {
      val name = sortedBy.head.name
      throw analyzed.noStatistics(s" of the values of the column $name", name)
    }
    columns.map(found.get).takeWhile(_.isDefined).flatten
  }

  /** The files of each partition, of which some are left to us. */
  private val partitions: Seq[Array[Int]] = {
    val groups = live.indices.groupBy(live(_).partition).values.toSeq
    val remaining = decision.files.paths.toSet
    for (files <- groups if groups.size < 2 || files.exists(file => remaining(live(file).path)))
      yield files.toArray
  }

  private val isPartitioned = partitions.size > 1 || partitions.exists(_.length < live.length)
  private val sorted = new SortedFiles(columns.zip(histograms), known, live, isPartitioned)

  def prospect: Prospect = {
    val (columnsOfFilter, first) = (filter.columns, sortedBy.head)
    val sortedKeys = columns.map(_._1)
    val others = columnsOfFilter.filterNot(use => sortedKeys.contains(use.key)).map(_.name)
    val source = if (histograms.head.isComplete) "value counts" else "histogram"
    val remark = if (others.isEmpty) "" else s", ${others.mkString(", ")} in no order"
    val isExact = histograms.head.isComplete && !isPartitioned &&
      columnsOfFilter.forall(_.key == sortedKeys.head) && isWhole &&
      asked.wanted.isEmpty && !decision.isAnswered
    Prospect(Some(filesRead), s"$source of ${first.name}$remark", isExact)
  }

  /** Whether the counts of values are those of the rows that would be written. */
  private def isWhole: Boolean = analyzed.isCurrent(snapshot) && snapshot.exact && {
    val counts = statistics.distinct(snapshot).getOrElse(Map.empty)
    counts.get(columns.head._1).exists(_.files == live.length)
  }

  private def filesRead: Long = {
    val excluding =
      for {
        i <- asked.conjuncts.indices
        conjunct = compile(Seq(i)) if conjunct.columns.nonEmpty
      } yield conjunct.evaluate(known)
    // A file that is a partition stays as it is.
    val (lone, several) =
      if (asked.wanted.isEmpty && !decision.isAnswered) partitions.partition(_.length == 1)
      else (Nil, partitions)
    val now = filter.evaluate(known)
    val unchanged = lone.count(files => now.isKept(files.head))
    val remaining = several.filter(files => excluding.forall(verdicts => files.exists(verdicts.isKept)))
    val runs = remaining.flatMap(sorted.runs)
    val files = asStatistics(runs)
    val verdicts = filter.evaluate(files)
    val read = FileSets.where(runs.size)(verdicts.isKept)
    lazy val full = filter.allRowsMatch(files)
    lazy val limited =
      asked.wanted.flatMap(LimitedFiles.by(_, files, read, read, full, _ => DeletedRows.Zero))
    lazy val open = FileSets.without(read, full).cardinality
    if (decision.isAnswered && (open == 0 || decision.after > 0 && open <= read.cardinality - open))
      open.toLong
    else unchanged + FileSets.without(read, limited.fold(new BitSet)(_.dropped)).cardinality.toLong
  }

  private def compile(conjuncts: Seq[Int]): PruningFilter =
    FilterCompiler.compile(
      conjuncts.map(asked.conjuncts(_)),
      asked.columns,
      new EvaluationAllowance(settings.maxEvaluations))

  private def asStatistics(files: Seq[List[SortedRun]]): InMemoryStatistics = {
    def byColumn[T](get: SortedRun => Option[T]) = {
      Indexed.entries(columns.zipWithIndex) { case (column, place) =>
        column -> files.map(_.lift(place).flatMap(get)).toIndexedSeq
      }
    }
    val rows = files.map(_.head.summary.rows).toArray
    new InMemoryStatistics(rows, byColumn(run => Some(run.summary)), byColumn(_.listed))
  }
}
