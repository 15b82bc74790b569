package org.metastore.spark.pruning

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.types.{BinaryType, DataType, Decimal, DecimalType, StringType}

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.{Reason, ReasonCode, VisibleText}
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, FileGroupStatistics, FileSetStatistics, ValueEvidence
}

private[pruning] final class ConjunctFilter(
    override val conjuncts: IndexedSeq[Expression], compiled: IndexedSeq[Condition]) extends PruningFilter {
  import ConjunctFilter._

  private val predicates = compiled.map(Intersections.tighten)

  /** What follows from several conjuncts together, and from which: numbered after the conjuncts. */
  private[pruning] val intersections: IndexedSeq[(Condition, Seq[Int])] = Intersections.of(compiled).toIndexedSeq

  private[pruning] val columnsOf: IndexedSeq[Seq[ColumnReference]] = predicates.map(used(_).distinct)

  override val columns: Seq[ColumnReference] = columnsOf.flatten.distinct

  /** Numbers are compared before byte strings: each of these lies somewhere else in memory, and few files may be left. */
  private val cheapestFirst: IndexedSeq[Int] = predicates.indices.sortBy(columnsOf(_).count(use => isBytes(use.dataType)))

  override def evaluate(files: FileSetStatistics): Verdicts = {
    val groups = new GroupCandidates(files, () => files.groups(columnKeys).map(group => group -> judgeGroups(group)))
    groups.survivors match {
      case Some(none) if none.isEmpty =>
        val unused = predicates.zipWithIndex.collect { case (Unknown(reason), i) => i -> reason }.toMap
        new FileVerdicts(this, files, groups.completeMarks(none, none), 0, unused)
      case Some(few) =>
        val (candidates, unused) = judgeFiles(files.among(few))
        new FileVerdicts(this, files, groups.completeMarks(few, candidates.skippedBy), candidates.count, unused)
      case None =>
        val (candidates, unused) = judgeFiles(files)
        new FileVerdicts(this, files, candidates.skippedBy, candidates.count, unused)
    }
  }

  /** For each group of files the mark of what excludes all of them, or [[FileVerdicts.Kept]]. */
  private def judgeGroups(group: FileGroupStatistics): Array[Int] = {
    val candidates = new Candidates(new Evaluation(group))
    val all = cheapestFirst.map(i => predicates(i) -> i) ++ intersections.indices.map(i => intersections(i)._1 -> (conjuncts.size + i))
    for ((predicate, mark) <- all)
      try candidates.narrow(predicate, mark)
      catch { case NonFatal(e) => log.debug("Files are judged one by one", e) } // which says why
    candidates.skippedBy
  }

  private def judgeFiles(files: FileSetStatistics): (Candidates, Map[Int, Reason]) = {
    val evaluation = loadColumns(files)
    val candidates = new Candidates(evaluation)
    var unused = Map.empty[Int, Reason]
    for (i <- cheapestFirst) whyUnused(i, evaluation) match {
      case Some(reason) => unused += i -> reason
      case None =>
        try candidates.narrow(predicates(i), i)
        catch { case NonFatal(e) => unused += i -> failed(i, e) }
    }
    for (((condition, _), i) <- intersections.zipWithIndex)
      try candidates.narrow(condition, conjuncts.size + i)
      catch { case NonFatal(e) => log.warn(VisibleText(s"No file is skipped by ${conjuncts.map(_.sql).mkString(" AND ")}"), e) }
    candidates.excludeEmpty(files.rows)
    lookUp(evaluation, files, candidates, unused.keySet)
    (candidates, unused)
  }

  /** Looks single values up in the files that bounds keep. */
  private def lookUp(evaluation: Evaluation, files: FileSetStatistics, candidates: Candidates, unused: Set[Int]): Unit =
    if (candidates.count <= MostLookedUp) {
      val all = predicates.indices.filterNot(unused).map(i => predicates(i) -> i) ++
        intersections.indices.map(i => intersections(i)._1 -> (conjuncts.size + i))
      for ((predicate, i) <- all if candidates.count > 0 && ValueLookups.hasPoints(predicate))
        try candidates.excludeAll(new ValueLookups(files, evaluation).noRowMatches(predicate, candidates.survivors), lookUps + i)
        catch { case NonFatal(e) => log.warn(VisibleText(s"No value is looked up for ${conjuncts.map(_.sql).mkString(" AND ")}"), e) }
    }

  /** Marks from here on tell of a look-up of single values; less this number they tell by what, as all marks do. */
  private[pruning] val lookUps: Int = conjuncts.size + intersections.size

  override def allRowsMatch(files: FileSetStatistics): Array[Boolean] = {
    val evaluation = loadColumns(files)
    predicates.indices.map { i =>
      try evaluation.allRowsMatch(predicates(i))
      catch {
        case NonFatal(e) =>
          failed(i, e)
          new Array[Boolean](files.files.length)
      }
    }.foldLeft(Array.fill(files.files.length)(true))((all, one) => all.zip(one).map { case (a, b) => a && b })
  }

  private def loadColumns(files: FileSetStatistics): Evaluation = {
    files.load(columnKeys)
    new Evaluation(files)
  }

  /** Why conjunct i cannot skip any file: it has no rule, or nothing is known of its columns. */
  private def whyUnused(i: Int, evaluation: Evaluation): Option[Reason] = predicates(i) match {
    case Unknown(reason) => Some(reason)
    case _ =>
      val known = columnsOf(i).map(evaluation.summaryOf)
      if (known.nonEmpty && known.forall(_.isLeft)) known.head.left.toOption else None
  }

  /** The conjuncts behind a mark. */
  private[pruning] def conjunctsOfMark(mark: Int): Seq[Int] =
    if (mark < conjuncts.size) Seq(mark)
    else if (mark < lookUps) intersections(mark - conjuncts.size)._2
    else conjunctsOfMark(mark - lookUps)

  private def failed(i: Int, cause: Throwable): Reason = {
    log.warn(VisibleText(s"No file is skipped by ${conjuncts(i).sql}"), cause)
    Reason.failure(cause)
  }
}

private object ConjunctFilter {
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")

  private val MostLookedUp = 16384 // data files

  private def isBytes(dataType: DataType): Boolean = dataType match {
    case decimal: DecimalType => decimal.precision > Decimal.MAX_LONG_DIGITS
    case _: StringType | BinaryType => true
    case _ => false
  }

  private def used(predicate: Condition): Seq[ColumnReference] = predicate match {
    case And(left, right) => used(left) ++ used(right)
    case Or(left, right) => used(left) ++ used(right)
    case NullTest(column, _) => Seq(column)
    case NaNTest(column, _) => Seq(column)
    case Member(term, _, _) => Seq(term.column)
    case Related(left, _, right) => Seq(left.column, right.column)
    case Always | Never | Unknown(_) => Nil
  }
}

/** The verdicts of one evaluation, with reasons built when asked. */
private[pruning] final class FileVerdicts(
    filter: ConjunctFilter, files: FileSetStatistics, skipped: Array[Int], override val keptCount: Int,
    override val unusedConjuncts: Map[Int, Reason]) extends Verdicts {
  import FileVerdicts._

  override def length: Int = skipped.length
  override def isKept(file: Int): Boolean = skipped(file) == Kept
  override def skippedBy(file: Int): Int = if (skipped(file) < 0) skipped(file) else filter.conjunctsOfMark(skipped(file)).max

  override def reason(file: Int): Reason = skipped(file) match {
    case Kept => whyKept(file)
    case Empty => Reason(ReasonCode.SkippedEmpty)
    case mark =>
      val behind = filter.conjunctsOfMark(mark)
      val byValues = mark >= filter.lookUps
      val statistic = behind.flatMap(filter.columnsOf(_)).distinct.map(known(_, file, byValues)).mkString("; ")
      Reason(
        if (byValues) ReasonCode.SkippedByValues else ReasonCode.Skipped,
        "conjunct" -> behind.map(filter.conjuncts(_).sql).mkString(" AND "), "statistic" -> statistic)
  }

  private def known(use: ColumnReference, file: Int, byValues: Boolean): String =
    SummaryText.of(files, use, file) + (if (byValues) SummaryText.values(files, use, file) else "")

  private def whyKept(file: Int): Reason =
    if (!files.isKnown(file)) Reason(ReasonCode.KeptFileUnknown)
    else filter.columns.flatMap(whyUnknown(_, file)).headOption.getOrElse(Reason(ReasonCode.KeptMayMatch))

  private def whyUnknown(use: ColumnReference, file: Int): Option[Reason] = files.column(use.key, use.dataType) match {
    case Right(summary) if summary.hasStatistics(file) => None
    case Right(summary) if summary.isContradictory(file) => Some(Reason(ReasonCode.KeptContradictory, "column" -> use.name))
    case _ => Some(Reason(ReasonCode.KeptColumnUnknown, "column" -> use.name))
  }
}

private[pruning] object FileVerdicts {
  val Kept = -1
  val Empty = -2
}

/** Writes what is known of a column in a file as people read it: `a in [1, 5], 2 of 10 rows null`. */
private[pruning] object SummaryText {

  def of(files: FileSetStatistics, use: ColumnReference, file: Int): String = files.column(use.key, use.dataType) match {
    case Right(summary) if summary.hasStatistics(file) => s"${use.name}${range(summary, file)}${nulls(summary, file)}"
    case _ => s"${use.name} unknown"
  }

  /** What is known of single values: `, all 200 values listed`. */
  def values(files: FileSetStatistics, use: ColumnReference, file: Int): String =
    files.values(use.key, use.dataType, Array(file), filters = true).evidence(file) match {
      case Some(ValueEvidence.InList(count)) => s", all $count values listed"
      case Some(ValueEvidence.InIndex) => ", where each value is listed"
      case Some(ValueEvidence.InFilter) => ", bloom filter"
      case None => ""
    }

  private def range(summary: ColumnSummary, file: Int): String = {
    val (lo, hi) = (CatalystValue.lo(summary, file), CatalystValue.hi(summary, file))
    if (lo.isEmpty && hi.isEmpty) ""
    else s" in [${text(lo, summary.dataType, summary.bounds.loExact(file))}, ${text(hi, summary.dataType, summary.bounds.hiExact(file))}]"
  }

  private def text(bound: Option[Any], dataType: DataType, exact: Boolean): String = bound.fold("?") { value =>
    val shown = try Literal(value, dataType).toString catch { case NonFatal(_) => value.toString }
    if (exact) shown else s"$shown…"
  }

  private def nulls(summary: ColumnSummary, file: Int): String =
    if (summary.nulls(file) < 0) "" else s", ${summary.nulls(file)} of ${summary.rows(file)} rows null"
}
