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
 * @param equivalents equal conditions on expressions with statistics, by the index of the conjunct
 * @param fromSeveral consequences of several conjuncts together
 */
private[pruning] final class ConjunctFilter(
    override val conjuncts: IndexedSeq[Expression],
    compiled: IndexedSeq[Condition],
    equivalents: Map[Int, Condition],
    fromSeveral: Seq[Consequence],
    allowance: EvaluationAllowance)
  extends PruningFilter {
  import ConjunctFilter._

  /** The consequences of several conjuncts together, or of one in another form. */
  private val consequences: IndexedSeq[Consequence] = {
    val (indices, onExpressions) = equivalents.toIndexedSeq.sortBy(_._1).unzip
    val fromSingle = onExpressions.indices.map { i =>
      Consequence(Intersections.tighten(onExpressions(i)), Seq(indices(i)))
    }
    val fromCommon = Intersections.find(onExpressions).map(_.at(indices))
    (Intersections.find(compiled) ++ fromSeveral ++ fromSingle ++ fromCommon).toIndexedSeq
  }

  /** The conjuncts, then the consequences: the index of a condition is its mark. */
  private val conditions: IndexedSeq[Condition] =
    compiled.map(Intersections.tighten) ++ consequences.map(_.condition)

  private[pruning] val columnsOf: IndexedSeq[Seq[ColumnReference]] = conditions.map(_.columns.distinct)

  override val columns: Seq[ColumnReference] = columnsOf.flatten.distinct

  /** The marks in the order of cost. Byte strings come late, for few files: they are scattered in memory. */
  private val cheapestFirst: IndexedSeq[Int] =
    conditions.indices.sortBy(i => (i >= conjuncts.size, columnsOf(i).count(c => isBytes(c.dataType))))

  override def evaluate(files: FileSetStatistics): Verdicts =
    try judge(files)
    catch {
      case late: PlanningTimeoutException =>
        val unused = Indexed.entries(conjuncts.indices)(_ -> late.reason)
        verdicts(files, new Candidates(files.files.length), unused)
    }

  private def judge(files: FileSetStatistics): FileVerdicts = {
    val candidates = new Candidates(files.files.length)
    excludeByGroups(files, candidates) match {
      case None =>
        judgeFiles(files)
      case Some(Array()) =>
        verdicts(files, candidates, withoutRule)
      case Some(few) =>
        val judged = judgeFiles(files.among(few))
        for (i <- few.indices) candidates.skippedBy(few(i)) = judged.skipped(i)
        judged.skippedByValues.stream.forEach(i => candidates.skippedByValues.set(few(i)))
        verdicts(files, candidates, judged.unusedConjuncts)
    }
  }

  private def verdicts(
      files: FileSetStatistics,
      candidates: Candidates,
      unused: Map[Int, Reason]): FileVerdicts =
    new FileVerdicts(this, files, candidates.skippedBy, candidates.skippedByValues, unused)

  /** The conditions without a rule, each with the reason. */
  private def withoutRule: Map[Int, Reason] = {
    val unknown = for ((Unknown(reason), i) <- conditions.zipWithIndex) yield i -> reason
    unknown.toMap
  }

  /** Excludes whole groups of files. Returns the files that remain, if they are few; else None. */
  private def excludeByGroups(files: FileSetStatistics, candidates: Candidates): Option[Array[Int]] =
    unlessLate[Option[Array[Int]]] {
      val groups = files.groups(columnKeys).map(group => group -> judgeGroups(group))
      for ((group, marks) <- groups) candidates.excludeGroups(group, marks)
      val areFew = candidates.count <= candidates.length / Fewer
      Optional.when(areFew)(candidates.survivors.stream.toArray)
    } { failure =>
      log.warn("Files are judged one by one", failure)
      None
    }

  /** For each group of files the mark of the condition that excludes all of them, or [[FileMarks.Kept]]. */
  private def judgeGroups(group: FileGroupStatistics): Array[Int] = {
    val candidates = new EvaluatedCandidates(new Evaluation(group, allowance))
    for (mark <- cheapestFirst)
      unlessLate(candidates.narrow(conditions(mark), mark))(log.debug("Files are judged one by one", _))
    candidates.skippedBy
  }

  /** Recovers from all failures but the timeout of planning, which it throws. */
  private def unlessLate[A](compute: => A)(recover: Throwable => A): A =
    try compute
    catch {
      case late: PlanningTimeoutException =>
        throw late
      case Recoverable(e) =>
        recover(e)
    }

  /** Judges each file by its own statistics. */
  private def judgeFiles(files: FileSetStatistics): FileVerdicts = {
    val evaluation = loadColumns(files)
    val candidates = new EvaluatedCandidates(evaluation)
    val unused = mutable.Map.empty[Int, Reason]
    for {
      mark <- cheapestFirst
      reason <- excludeByBounds(mark, evaluation, candidates)
    } unused(mark) = reason
    excludeEmpty(files, candidates)
    val lookUps = new ValueLookups(files, evaluation, allowance)
    val used = if (candidates.count > MostLookedUp) Nil else conditions.indices.filterNot(unused.contains)
    for {
      mark <- used.sortBy(conditions(_).isInstanceOf[Evaluated])
      reason <- lookUp(mark, lookUps, candidates)
    } unused(mark) = reason
    val unusedConjuncts = unused.filter { case (mark, _) => mark < conjuncts.size }
    verdicts(files, candidates, unusedConjuncts.toMap)
  }

  /** Excludes files by the bounds of their columns. Returns the reason if it cannot. */
  private def excludeByBounds(
      mark: Int,
      evaluation: Evaluation,
      candidates: EvaluatedCandidates): Option[Reason] = {
    val unused = unusableReason(mark, evaluation)
    unused.orElse(attempt(mark)(candidates.narrow(conditions(mark), mark)))
  }

  private def excludeEmpty(files: FileSetStatistics, candidates: Candidates): Unit = {
    var file = 0
    while (file < files.rows.length) {
      if (files.rows(file) == 0) candidates.exclude(file, FileMarks.Empty)
      file += 1
    }
  }

  /** Looks up values in the files that bounds keep. Returns the reason if nothing decides the condition. */
  private def lookUp(mark: Int, lookUps: ValueLookups, candidates: Candidates): Option[Reason] = {
    val condition = conditions(mark)
    val before = lookUps.evaluations
    if (condition.usesValues) attempt(mark) {
      candidates.excludeByValues(lookUps.noRowMatches(condition, candidates.survivors), mark)
    }
    val isEvaluated = lookUps.evaluations > before
    condition match {
      case Evaluated(Unknown(reason), _, _, _) if !isEvaluated && candidates.count > 0 =>
        Some(reason)
      case _ => None
    }
  }

  override def allRowsMatch(files: FileSetStatistics): BitSet = {
    val evaluation = loadColumns(files)
    val lookUps = new ValueLookups(files, evaluation, allowance)
    def prove(condition: Condition, candidates: BitSet) =
      if (candidates.cardinality > MostLookedUp)
        FileSets.both(candidates, condition.allRowsMatch(evaluation))
      else lookUps.allRowsMatch(condition, candidates)
    var matching = FileSets.all(files.files.length)
    for (i <- conjuncts.indices) {
      val proven = new BitSet
      for (condition <- conditions(i) +: equivalents.get(i).toSeq)
        attempt(i)(proven.or(prove(condition, matching)))
      matching = proven
    }
    matching
  }

  private def loadColumns(files: FileSetStatistics): Evaluation = {
    files.load(columnKeys)
    new Evaluation(files, allowance)
  }

  /** The reason why a condition cannot skip any file: it has no rule, or its columns have no statistics. */
  private def unusableReason(mark: Int, evaluation: Evaluation): Option[Reason] = conditions(mark) match {
    case Unknown(reason) => Some(reason)
    case _ =>
      val summaries = columnsOf(mark).map(evaluation.summaryOf)
      if (summaries.nonEmpty && summaries.forall(_.isLeft)) summaries.head.left.toOption
      else None
  }

  /** The indices of the conjuncts that a condition is made of. */
  private[pruning] def conjunctsOf(mark: Int): Seq[Int] =
    if (mark < conjuncts.size) Seq(mark) else consequences(mark - conjuncts.size).conjuncts

  /** Uses a condition, if there is time for it. Returns the reason if it fails. */
  private def attempt(mark: Int)(use: => Unit): Option[Reason] =
    Attempt.recover {
      allowance.requireTime()
      use
      Option.empty[Reason]
    } { failure =>
      log.warn(VisibleText(s"No file is skipped by ${textOf(mark)}"), failure)
      Some(Reason.failure(failure))
    }

  /** The SQL of the conjuncts that a condition is made of. */
  private[pruning] def textOf(mark: Int): String =
    conjunctsOf(mark).map(i => ConjunctText(conjuncts(i))).mkString(" AND ")
}

private object ConjunctFilter {
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")

  private val MostLookedUp = 16384 // data files
  // of more files than this share, statistics are loaded whole: they stay in the cache for later queries
  private val Fewer = 16

  private def isBytes(dataType: DataType): Boolean =
    TypePromotion.encoding(dataType).contains(Encoding.BinaryValues)
}

/** The verdicts of one evaluation; reasons are built on demand. */
private[pruning] final class FileVerdicts(
    filter: ConjunctFilter,
    files: FileSetStatistics,
    val skipped: Array[Int],
    val skippedByValues: BitSet,
    override val unusedConjuncts: Map[Int, Reason])
  extends Verdicts {
  import FileMarks.{Empty, Kept}

  override def length: Int = skipped.length
  override def isKept(file: Int): Boolean = skipped(file) == Kept
  override lazy val keptCount: Int = skipped.count(_ == Kept)

  override def skippedBy(file: Int): Int = {
    val mark = skipped(file)
    if (mark < 0) mark else filter.conjunctsOf(mark).max
  }

  override def reason(file: Int): Reason = skipped(file) match {
    case Kept =>
      keptReason(file)
    case Empty =>
      Reason(ReasonCode.SkippedEmpty)
    case mark =>
      val byValues = skippedByValues.get(file)
      val statistic = filter.columnsOf(mark).map(describe(_, file, byValues)).mkString("; ")
      Reason(
        if (byValues) ReasonCode.SkippedByValues else ReasonCode.Skipped,
        "conjunct" -> filter.textOf(mark),
        "statistic" -> statistic)
  }

  private def describe(column: ColumnReference, file: Int, byValues: Boolean): String =
    SummaryText.bounds(files, column, file) + (if (byValues) SummaryText.values(files, column, file) else "")

  private def keptReason(file: Int): Reason =
    if (!files.isKnown(file)) Reason(ReasonCode.KeptFileUnknown)
    else
      Indexed.firstAnswer(filter.columns)(missingReason(_, file)).getOrElse(Reason(ReasonCode.KeptMayMatch))

  /** The reason why a column decides nothing about a file; None if it has statistics. */
  private def missingReason(column: ColumnReference, file: Int): Option[Reason] =
    files.column(column.key, column.dataType) match {
      case Right(summary) if summary.hasStatistics(file) => None
      case Right(summary) if summary.isContradictory(file) =>
        Some(Reason(ReasonCode.KeptContradictory, "column" -> column.name))
      case _ =>
        Some(Reason(ReasonCode.KeptColumnUnknown, "column" -> column.name))
    }
}
