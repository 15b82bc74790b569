package org.metastore.spark.pruning

import java.util.BitSet

import scala.collection.mutable

import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.Condition.{Evaluated, Unknown}
import org.metastore.spark.reason.{
  Attempt, Indexed, Optional, PlanningTimeoutException, Reason, ReasonCode, Recoverable, VisibleText
}
import org.metastore.spark.statistics.columns.{FileGroupStatistics, FileSetStatistics, TypePromotion}
import org.metastore.spark.statistics.objects.Encoding

/**
 * Evaluates the conditions of conjuncts on the statistics of files.
 *
 * @param equal    equal conditions on expressions with statistics, by the place of the conjunct
 * @param together consequences of several conjuncts
 */
private[pruning] final class ConjunctFilter(
    override val conjuncts: IndexedSeq[Expression],
    compiled: IndexedSeq[Condition],
    equal: Map[Int, Condition],
    together: Seq[Consequence],
    allowance: EvaluationAllowance)
  extends PruningFilter {
  import ConjunctFilter._

  /** Consequences of several conjuncts together, or of one in another form. */
  private val consequences: IndexedSeq[Consequence] = {
    val (places, onExpressions) = equal.toIndexedSeq.sortBy(_._1).unzip
    val ofSingle = onExpressions.indices.map { i =>
      Consequence(Intersections.tighten(onExpressions(i)), Seq(places(i)))
    }
    val ofSeveral = Intersections.find(onExpressions).map(_.at(places))
    (Intersections.find(compiled) ++ together ++ ofSingle ++ ofSeveral).toIndexedSeq
  }

  /** The conjuncts, then the consequences: the place of a condition is its mark. */
  private val conditions: IndexedSeq[Condition] =
    compiled.map(Intersections.tighten) ++ consequences.map(_.condition)

  private[pruning] val columnsOf: IndexedSeq[Seq[ColumnReference]] = conditions.map(_.columns.distinct)

  override val columns: Seq[ColumnReference] = columnsOf.flatten.distinct

  /** Numbers are compared before byte strings: each of these lies somewhere else in memory, and few files may be left. */
  private val cheapestFirst: IndexedSeq[Int] =
    conditions.indices.sortBy(i => (i >= conjuncts.size, columnsOf(i).count(use => isBytes(use.dataType))))

  override def evaluate(files: FileSetStatistics): Verdicts =
    try judge(files)
    catch {
      case late: PlanningTimeoutException =>
        val marks = Array.fill(files.files.length)(FileMarks.Kept)
        val unused = Indexed.entries(conjuncts.indices)(_ -> late.reason)
        new FileVerdicts(this, files, marks, unused)
    }

  private def judge(files: FileSetStatistics): FileVerdicts = {
    val candidates = new Candidates(files.files.length)
    keptByGroups(files, candidates) match {
      case None =>
        judgeFiles(files)
      case Some(Array()) =>
        new FileVerdicts(this, files, candidates.skippedBy, withoutRule)
      case Some(few) =>
        val verdicts = judgeFiles(files.among(few))
        for (i <- few.indices) candidates.skippedBy(few(i)) = verdicts.skipped(i)
        new FileVerdicts(this, files, candidates.skippedBy, verdicts.unusedConjuncts)
    }
  }

  /** The conditions without a rule, with the reason. */
  private def withoutRule: Map[Int, Reason] = {
    val unknown = for ((Unknown(reason), i) <- conditions.zipWithIndex) yield i -> reason
    unknown.toMap
  }

  /** The files that are left once whole groups of them are excluded, where they are few; else all are judged one by one. */
  private def keptByGroups(files: FileSetStatistics, candidates: Candidates): Option[Array[Int]] =
    unlessLate[Option[Array[Int]]] {
      val groups = files.groups(columnKeys).map(group => group -> judgeGroups(group))
      for ((group, marks) <- groups) candidates.excludeGroups(group, marks)
      val areFew = candidates.count <= candidates.length / Fewer
      Optional.when(areFew)(candidates.survivors.stream.toArray)
    } { failure =>
      log.warn("Files are judged one by one", failure)
      None
    }

  /** For each group of files the mark of what excludes all of them, or [[FileMarks.Kept]]. */
  private def judgeGroups(group: FileGroupStatistics): Array[Int] = {
    val candidates = new EvaluatedCandidates(new Evaluation(group, allowance))
    for (mark <- cheapestFirst)
      unlessLate(candidates.narrow(conditions(mark), mark))(log.debug("Files are judged one by one", _))
    candidates.skippedBy
  }

  /** The result, or that of `recover` for a failure; raises that planning is late. */
  private def unlessLate[A](compute: => A)(recover: Throwable => A): A =
    try compute
    catch {
      case late: PlanningTimeoutException =>
        throw late
      case Recoverable(e) =>
        recover(e)
    }

  /** For each file the mark of what excludes it, judged alone, and why conjuncts could not be used. */
  private def judgeFiles(files: FileSetStatistics): FileVerdicts = {
    val evaluation = loadColumns(files)
    val candidates = new EvaluatedCandidates(evaluation)
    val unused = mutable.Map.empty[Int, Reason]
    for {
      mark <- cheapestFirst
      reason <- compareBounds(mark, evaluation, candidates)
    } unused(mark) = reason
    excludeEmpty(files, candidates)
    val lookUps = new ValueLookups(files, evaluation, allowance)
    val open = if (candidates.count > MostLookedUp) Nil else conditions.indices.filterNot(unused.contains)
    for {
      mark <- open.sortBy(conditions(_).isInstanceOf[Evaluated])
      reason <- lookUp(mark, lookUps, candidates)
    } unused(mark) = reason
    val ofConjuncts = unused.filter { case (mark, _) => mark < conjuncts.size }
    new FileVerdicts(this, files, candidates.skippedBy, ofConjuncts.toMap)
  }

  /** Excludes files by the bounds of their columns. Returns why that is not possible, where it is not. */
  private def compareBounds(
      mark: Int,
      evaluation: Evaluation,
      candidates: EvaluatedCandidates): Option[Reason] = {
    val unused = whyUnused(mark, evaluation)
    unused.orElse(whyFailed(mark)(candidates.narrow(conditions(mark), mark)))
  }

  private def excludeEmpty(files: FileSetStatistics, candidates: Candidates): Unit = {
    var file = 0
    while (file < files.rows.length) {
      if (files.rows(file) == 0) candidates.exclude(file, FileMarks.Empty)
      file += 1
    }
  }

  /** Looks single values up in the files that bounds keep. Returns why that is of no use, where nothing else is. */
  private def lookUp(mark: Int, lookUps: ValueLookups, candidates: Candidates): Option[Reason] = {
    val condition = conditions(mark)
    val before = lookUps.evaluations
    if (condition.usesValues) whyFailed(mark) {
      val excluded = lookUps.noRowMatches(condition, candidates.survivors)
      excluded.stream.forEach(candidates.exclude(_, firstLookUp + mark))
    }
    val isEvaluated = lookUps.evaluations > before
    condition match {
      case Evaluated(Unknown(reason), _, _, _) if !isEvaluated && candidates.count > 0 =>
        Some(reason)
      case _ => None
    }
  }

  /** Marks from here on tell of a look-up of single values; less this number they tell by what, as all marks do. */
  private[pruning] val firstLookUp: Int = conditions.size

  override def allRowsMatch(files: FileSetStatistics): BitSet = {
    val evaluation = loadColumns(files)
    val lookUps = new ValueLookups(files, evaluation, allowance)
    def prove(condition: Condition, among: BitSet) =
      if (among.cardinality > MostLookedUp) FileSets.both(among, condition.allRowsMatch(evaluation))
      else lookUps.allRowsMatch(condition, among)
    var matching = FileSets.all(files.files.length)
    for (i <- conjuncts.indices) {
      val proven = new BitSet
      for (condition <- conditions(i) +: equal.get(i).toSeq)
        whyFailed(i)(proven.or(prove(condition, matching)))
      matching = proven
    }
    matching
  }

  private def loadColumns(files: FileSetStatistics): Evaluation = {
    files.load(columnKeys)
    new Evaluation(files, allowance)
  }

  /** Why a condition cannot skip any file: it has no rule, or nothing is known of its columns. */
  private def whyUnused(mark: Int, evaluation: Evaluation): Option[Reason] = conditions(mark) match {
    case Unknown(reason) => Some(reason)
    case _ =>
      val summaries = columnsOf(mark).map(evaluation.summaryOf)
      if (summaries.nonEmpty && summaries.forall(_.isLeft)) summaries.head.left.toOption
      else None
  }

  /** The conjuncts behind a mark. */
  private[pruning] def conjunctsOfMark(mark: Int): Seq[Int] = {
    val condition = conditionOfMark(mark)
    if (condition < conjuncts.size) Seq(condition) else consequences(condition - conjuncts.size).conjuncts
  }

  /** The columns behind a mark. */
  private[pruning] def columnsOfMark(mark: Int): Seq[ColumnReference] = columnsOf(conditionOfMark(mark))

  private def conditionOfMark(mark: Int): Int = if (mark < firstLookUp) mark else mark - firstLookUp

  private def whyFailed(mark: Int)(use: => Unit): Option[Reason] =
    Attempt.recover {
      allowance.requireTime()
      use
      Option.empty[Reason]
    } { failure =>
      val behind = conjunctsOfMark(mark).map(i => ConjunctText(conjuncts(i))).mkString(" AND ")
      log.warn(VisibleText(s"No file is skipped by $behind"), failure)
      Some(Reason.failure(failure))
    }
}

private object ConjunctFilter {
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")

  private val MostLookedUp = 16384 // data files
  // of more than that share, what whole columns tell is worth keeping for later queries
  private val Fewer = 16

  private def isBytes(dataType: DataType): Boolean =
    TypePromotion.encoding(dataType).contains(Encoding.BinaryValues)
}

/** The verdicts of one evaluation, with reasons built when asked. */
private[pruning] final class FileVerdicts(
    filter: ConjunctFilter,
    files: FileSetStatistics,
    val skipped: Array[Int],
    override val unusedConjuncts: Map[Int, Reason])
  extends Verdicts {
  import FileMarks.{Empty, Kept}

  override def length: Int = skipped.length
  override def isKept(file: Int): Boolean = skipped(file) == Kept
  override lazy val keptCount: Int = skipped.count(_ == Kept)

  override def skippedBy(file: Int): Int = {
    val mark = skipped(file)
    if (mark < 0) mark else filter.conjunctsOfMark(mark).max
  }

  override def reason(file: Int): Reason = skipped(file) match {
    case Kept =>
      whyKept(file)
    case Empty =>
      Reason(ReasonCode.SkippedEmpty)
    case mark =>
      val behind = filter.conjunctsOfMark(mark)
      val byValues = mark >= filter.firstLookUp
      val statistic = filter.columnsOfMark(mark).map(describe(_, file, byValues)).mkString("; ")
      Reason(
        if (byValues) ReasonCode.SkippedByValues else ReasonCode.Skipped,
        "conjunct" -> behind.map(i => ConjunctText(filter.conjuncts(i))).mkString(" AND "),
        "statistic" -> statistic)
  }

  private def describe(use: ColumnReference, file: Int, byValues: Boolean): String =
    SummaryText.bounds(files, use, file) + (if (byValues) SummaryText.values(files, use, file) else "")

  private def whyKept(file: Int): Reason =
    if (!files.isKnown(file)) Reason(ReasonCode.KeptFileUnknown)
    else Indexed.firstAnswer(filter.columns)(whyUnknown(_, file)).getOrElse(Reason(ReasonCode.KeptMayMatch))

  private def whyUnknown(use: ColumnReference, file: Int): Option[Reason] =
    files.column(use.key, use.dataType) match {
      case Right(summary) if summary.hasStatistics(file) => None
      case Right(summary) if summary.isContradictory(file) =>
        Some(Reason(ReasonCode.KeptContradictory, "column" -> use.name))
      case _ =>
        Some(Reason(ReasonCode.KeptColumnUnknown, "column" -> use.name))
    }
}
