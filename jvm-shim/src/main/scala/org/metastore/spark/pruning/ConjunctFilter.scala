package org.metastore.spark.pruning

import java.util.BitSet

import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.types.{BinaryType, DataType, Decimal, DecimalType, StringType}

import org.metastore.spark.pruning.Condition._
import org.metastore.spark.reason.{
  BinaryText, PlanningTimeoutException, Reason, ReasonCode, Recoverable, VisibleText
}
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSummary, FileGroupStatistics, FileSetStatistics, ValueEvidence
}

/**
 * @param equal    of some conjuncts an equal condition on expressions that have statistics
 * @param together what follows from several conjuncts, and from which
 */
private[pruning] final class ConjunctFilter(
    override val conjuncts: IndexedSeq[Expression],
    compiled: IndexedSeq[Condition],
    equal: Map[Int, Condition],
    together: Seq[(Condition, Seq[Int])],
    allowance: EvaluationAllowance)
  extends PruningFilter {
  import ConjunctFilter._

  /** What follows from several conjuncts together or from one in another way, and from which. */
  private val intersections: IndexedSeq[(Condition, Seq[Int])] = {
    val (places, onExpressions) = equal.toIndexedSeq.sortBy(_._1).unzip
    val alone = places.zip(onExpressions).map { case (i, condition) =>
      Intersections.tighten(condition) -> Seq(i)
    }
    val severalOfThem = Intersections.of(onExpressions).map { case (condition, of) =>
      condition -> of.map(places)
    }
    (Intersections.of(compiled) ++ together ++ alone ++ severalOfThem).toIndexedSeq
  }

  /** The conjuncts, and behind them what follows from several: the place of a condition is its mark. */
  private val conditions: IndexedSeq[Condition] =
    compiled.map(Intersections.tighten) ++ intersections.map(_._1)

  private[pruning] val columnsOf: IndexedSeq[Seq[ColumnReference]] = conditions.map(used(_).distinct)

  override val columns: Seq[ColumnReference] = columnsOf.flatten.distinct

  /** Numbers are compared before byte strings: each of these lies somewhere else in memory, and few files may be left. */
  private val cheapestFirst: IndexedSeq[Int] =
    conditions.indices.sortBy(i => (i >= conjuncts.size, columnsOf(i).count(use => isBytes(use.dataType))))

  override def evaluate(files: FileSetStatistics): Verdicts = {
    val (skippedBy, unused) =
      try judge(files)
      catch {
        case late: PlanningTimeoutException =>
          (Array.fill(files.files.length)(FileVerdicts.Kept), unusedAll(late.reason))
      }
    new FileVerdicts(this, files, skippedBy, unused)
  }

  private def unusedAll(reason: Reason): Map[Int, Reason] = conjuncts.indices.map(_ -> reason).toMap

  private def judge(files: FileSetStatistics): (Array[Int], Map[Int, Reason]) = {
    val candidates = new Candidates(files.files.length)
    keptByGroups(files, candidates) match {
      case None => judgeFiles(files)
      case Some(Array()) => (
          candidates.skippedBy,
          conditions.zipWithIndex.collect { case (Unknown(reason), i) => i -> reason }.toMap)
      case Some(few) =>
        val (judged, unused) = judgeFiles(files.among(few))
        few.indices.foreach(i => candidates.skippedBy(few(i)) = judged(i))
        (candidates.skippedBy, unused)
    }
  }

  /** The files that are left once whole groups of them are excluded, where they are few; else all are judged one by one. */
  private def keptByGroups(files: FileSetStatistics, candidates: Candidates): Option[Array[Int]] =
    try {
      val groups = files.groups(columnKeys).map(group => group -> judgeGroups(group))
      groups.foreach { case (group, marks) => candidates.excludeGroups(group, marks) }
      if (candidates.count > candidates.length / Fewer) None else Some(candidates.survivors.stream.toArray)
    } catch {
      case late: PlanningTimeoutException => throw late
      case Recoverable(e) =>
        log.warn("Files are judged one by one", e)
        None
    }

  /** For each group of files the mark of what excludes all of them, or [[FileVerdicts.Kept]]. */
  private def judgeGroups(group: FileGroupStatistics): Array[Int] = {
    val candidates = new EvaluatedCandidates(new Evaluation(group, allowance))
    for (mark <- cheapestFirst)
      try candidates.narrow(conditions(mark), mark)
      catch {
        case late: PlanningTimeoutException => throw late
        case Recoverable(e) => log.debug("Files are judged one by one", e) // which says why
      }
    candidates.skippedBy
  }

  /** For each file the mark of what excludes it, judged alone, and why conjuncts could not be used. */
  private def judgeFiles(files: FileSetStatistics): (Array[Int], Map[Int, Reason]) = {
    val evaluation = loadColumns(files)
    val candidates = new EvaluatedCandidates(evaluation)
    val unused = cheapestFirst.flatMap { mark =>
      whyUnused(
        mark,
        evaluation).orElse(whyFailed(mark)(candidates.narrow(conditions(mark), mark))).map(mark -> _)
    }.toMap
    files.rows.indices.foreach(file =>
      if (files.rows(file) == 0) candidates.exclude(file, FileVerdicts.Empty))
    val lookUps = new ValueLookups(files, evaluation, allowance)
    val open = if (candidates.count > MostLookedUp) Nil else conditions.indices.filterNot(unused.contains)
    val useless = open.sortBy(conditions(_).isInstanceOf[Evaluated]).flatMap(mark =>
      lookUp(mark, lookUps, candidates).map(mark -> _))
    (candidates.skippedBy, (unused ++ useless).filter { case (mark, _) => mark < conjuncts.size })
  }

  /** Looks single values up in the files that bounds keep. Why that is of no use, where nothing else is. */
  private def lookUp(mark: Int, lookUps: ValueLookups, candidates: Candidates): Option[Reason] = {
    val before = lookUps.evaluations
    if (ValueLookups.asksForValues(conditions(mark))) whyFailed(mark) {
      lookUps.noRowMatches(
        conditions(mark),
        candidates.survivors).stream.forEach(candidates.exclude(_, firstLookUp + mark))
    }
    conditions(mark) match {
      case Evaluated(Unknown(reason), _, _, _) if lookUps.evaluations == before && candidates.count > 0 =>
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
      if (among.cardinality > MostLookedUp) FileSets.both(among, evaluation.allRowsMatch(condition))
      else lookUps.allRowsMatch(condition, among)
    conjuncts.indices.foldLeft(FileSets.all(files.files.length)) { (among, i) =>
      val proven = new BitSet
      (conditions(i) +: equal.get(i).toSeq).foreach(condition =>
        whyFailed(i) { proven.or(prove(condition, among)) })
      proven
    }
  }

  private def loadColumns(files: FileSetStatistics): Evaluation = {
    files.load(columnKeys)
    new Evaluation(files, allowance)
  }

  /** Why a condition cannot skip any file: it has no rule, or nothing is known of its columns. */
  private def whyUnused(mark: Int, evaluation: Evaluation): Option[Reason] = conditions(mark) match {
    case Unknown(reason) => Some(reason)
    case _ =>
      val known = columnsOf(mark).map(evaluation.summaryOf)
      if (known.nonEmpty && known.forall(_.isLeft)) known.head.left.toOption else None
  }

  /** The conjuncts behind a mark. */
  private[pruning] def conjunctsOfMark(mark: Int): Seq[Int] =
    if (mark < conjuncts.size) Seq(mark)
    else if (mark < firstLookUp) intersections(mark - conjuncts.size)._2
    else conjunctsOfMark(mark - firstLookUp)

  /** The columns behind a mark. */
  private[pruning] def columnsOfMark(mark: Int): Seq[ColumnReference] =
    columnsOf(if (mark < firstLookUp) mark else mark - firstLookUp)

  private def whyFailed(mark: Int)(use: => Unit): Option[Reason] =
    try {
      allowance.requireTime()
      use
      None
    } catch {
      case Recoverable(e) =>
        log.warn(
          VisibleText(
            s"No file is skipped by ${conjunctsOfMark(mark).map(conjuncts(_).sql).mkString(" AND ")}"),
          e)
        Some(Reason.failure(e))
    }
}

private object ConjunctFilter {
  private val log = LoggerFactory.getLogger("org.metastore.spark.pruning")

  private val MostLookedUp = 16384 // data files
  // of more than that share, what whole columns tell is worth keeping for later queries
  private val Fewer = 16

  private def isBytes(dataType: DataType): Boolean = dataType match {
    case decimal: DecimalType => decimal.precision > Decimal.MAX_LONG_DIGITS
    case _: StringType | BinaryType => true
    case _ => false
  }

  private def used(predicate: Condition): Seq[ColumnReference] = predicate match {
    case And(left, right) => used(left) ++ used(right)
    case Or(left, right) => used(left) ++ used(right)
    case Evaluated(rules, column, _, _) => used(rules) :+ column
    case NullTest(column, _) => Seq(column)
    case NaNTest(column, _) => Seq(column)
    case Member(term, _, _) => Seq(term.column)
    case Related(left, _, right) => Seq(left.column, right.column)
    case _ => Nil
  }
}

/** The verdicts of one evaluation, with reasons built when asked. */
private[pruning] final class FileVerdicts(
    filter: ConjunctFilter,
    files: FileSetStatistics,
    skipped: Array[Int],
    override val unusedConjuncts: Map[Int, Reason])
  extends Verdicts {
  import FileVerdicts._

  override def length: Int = skipped.length
  override def isKept(file: Int): Boolean = skipped(file) == Kept
  override lazy val keptCount: Int = skipped.count(_ == Kept)
  override def skippedBy(file: Int): Int =
    if (skipped(file) < 0) skipped(file) else filter.conjunctsOfMark(skipped(file)).max

  override def reason(file: Int): Reason = skipped(file) match {
    case Kept => whyKept(file)
    case Empty => Reason(ReasonCode.SkippedEmpty)
    case mark =>
      val behind = filter.conjunctsOfMark(mark)
      val byValues = mark >= filter.firstLookUp
      val statistic = filter.columnsOfMark(mark).map(known(_, file, byValues)).mkString("; ")
      Reason(
        if (byValues) ReasonCode.SkippedByValues else ReasonCode.Skipped,
        "conjunct" -> behind.map(filter.conjuncts(_).sql).mkString(" AND "),
        "statistic" -> statistic)
  }

  private def known(use: ColumnReference, file: Int, byValues: Boolean): String =
    SummaryText.of(files, use, file) + (if (byValues) SummaryText.values(files, use, file) else "")

  private def whyKept(file: Int): Reason =
    if (!files.isKnown(file)) Reason(ReasonCode.KeptFileUnknown)
    else filter.columns.flatMap(whyUnknown(_, file)).headOption.getOrElse(Reason(ReasonCode.KeptMayMatch))

  private def whyUnknown(use: ColumnReference, file: Int): Option[Reason] =
    files.column(use.key, use.dataType) match {
      case Right(summary) if summary.hasStatistics(file) => None
      case Right(summary) if summary.isContradictory(file) =>
        Some(Reason(ReasonCode.KeptContradictory, "column" -> use.name))
      case _ => Some(Reason(ReasonCode.KeptColumnUnknown, "column" -> use.name))
    }
}

private[pruning] object FileVerdicts {
  val Kept = -1
  val Empty = -2
}

/** Writes what is known of a column in a file as people read it: `a in [1, 5], 2 of 10 rows null`. */
private[pruning] object SummaryText {

  def of(files: FileSetStatistics, use: ColumnReference, file: Int): String =
    files.column(use.key, use.dataType) match {
      case Right(summary) if summary.hasStatistics(file) =>
        s"${use.name}${range(summary, file)}${nulls(summary, file)}"
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
    else
      s" in [${text(lo, summary.dataType, summary.bounds.loExact(file))}, ${text(hi, summary.dataType, summary.bounds.hiExact(file))}]"
  }

  private def text(bound: Option[Any], dataType: DataType, exact: Boolean): String =
    bound.fold("?") { value =>
      val shown = value match {
        case bytes: Array[Byte] => BinaryText.render(bytes)
        case _ =>
          try Literal(value, dataType).toString
          catch { case Recoverable(_) => value.toString }
      }
      if (exact) shown else s"$shown…"
    }

  private def nulls(summary: ColumnSummary, file: Int): String =
    if (summary.nulls(file) < 0) "" else s", ${summary.nulls(file)} of ${summary.rows(file)} rows null"
}
