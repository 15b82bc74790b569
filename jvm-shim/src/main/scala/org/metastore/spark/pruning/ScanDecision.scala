package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.{Attempt, Indexed, Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * The decision on the files of a scan, with reasons: for EXPLAIN, metrics, `metastore.explain` and the log.
 *
 * @param table     the table's name as plans show it
 * @param files     the data files that the table format itself would have read
 * @param rows      physical rows of each file, -1 if unknown
 * @param outcome   the verdict on each file, or the reason why the scan is not pruned
 * @param contradictoryFiles files whose statistics contradict the table format: read whatever the verdict is
 * @param version   fingerprint of the statistics, empty if there are none
 * @param filesWithChanges files whose rows other files change: read whatever the verdict is
 * @param live      all data files of the snapshot
 * @param estimate  the number of rows that satisfy the scan's filter
 * @param limited   files that a LIMIT leaves unread
 * @param answered  files that are not read because the statistics answer an aggregate of their rows
 * @param isJoined  whether the keys of a join exclude more files when the query runs
 * @param full      the files in which every row is live and matches, if a LIMIT may choose files
 * @param question  the filter and limit that the statistics were used for, or None
 * @param topK      the reason why an ORDER BY with a LIMIT leaves no file unread
 */
final class ScanDecision(
    val table: String,
    val files: FileList,
    val rows: Array[Long],
    val outcome: Either[Reason, ScanDecision.Verdict],
    val contradictoryFiles: BitSet,
    val version: String,
    val filesWithChanges: BitSet = new BitSet,
    live: LiveFiles = LiveFiles.Unknown,
    estimate: () => Option[ScanEstimate] = () => None,
    limited: Option[LimitedFiles] = None,
    answered: Option[BitSet] = None,
    isJoined: Boolean = false,
    val full: BitSet = new BitSet,
    val question: Option[ScanQuestion] = None,
    topK: Option[Reason] = None) {

  /** The files that are read. */
  val survivors: BitSet = FileSets.where(files.length) { file =>
    !isLimited(file) && !isAnswered(file) && (isReadAnyway(file) || isKept(file))
  }

  /** Whether a file is read whatever the verdict on it is. */
  private def isReadAnyway(file: Int): Boolean = filesWithChanges.get(file) || contradictoryFiles.get(file)

  private def isKept(file: Int): Boolean = outcome match {
    case Right(verdict) => verdict.verdicts.isKept(file)
    case Left(_) => true
  }

  /** The files that are read and whose statistics may still exclude them. */
  def excludable: BitSet = FileSets.without(FileSets.without(survivors, filesWithChanges), contradictoryFiles)

  /** The paths of live files without a matching row; none if files stay unread for another reason. */
  def pathsSkipped: Seq[String] =
    if (limited.isDefined || answered.isDefined) Nil
    else skipped.map(files.paths(_)) ++ excludedByFormat.map(_._1)

  /** The paths of the files that are read. */
  def survivingPaths: Set[String] = Indexed.set((0 until before).filter(survivors.get(_)))(files.paths(_))

  private def skipped: Seq[Int] = (0 until before).filterNot(survivors.get(_))

  /** The live files that the table format or the query excluded, with their rows. */
  private def excludedByFormat: Seq[(String, Option[Long])] = {
    val paths = files.paths.toSet
    live.list().filterNot { case (path, _) => paths(path) }
  }

  /** Whether the statistics answer an aggregate of some of the files. */
  def isAnswered: Boolean = answered.isDefined

  private def isLimited(file: Int): Boolean = limited.exists(_.dropped.get(file))
  private def isAnswered(file: Int): Boolean = answered.exists(_.get(file))

  /** The number of rows that satisfy the scan's filter; None if it cannot be estimated. */
  lazy val rowEstimate: Option[ScanEstimate] = Attempt.orNone(estimate()).flatten

  def before: Int = files.length
  def after: Int = survivors.cardinality

  /** The number of live files that the table format or the query excluded; 0 if it is unknown. */
  val skippedByFormat: Long = live.beyond(before)

  /** Live data files of the snapshot. */
  def total: Long = before + skippedByFormat

  /** Bytes of the files that the decision drops. */
  def bytesSkipped: Long = skipped.map(files.sizes(_)).sum

  /** The causes of unread files, such as a conjunct or a LIMIT, with numbers; or why nothing is pruned. */
  def unread: Seq[(String, Long)] = outcome match {
    case Left(reason) => Seq(reason.code.name -> 0L)
    case Right(verdict) =>
      val causes = skipped.map(causeOf(_, verdict))
      val counts = for ((cause, unread) <- causes.groupBy(identity)) yield cause -> unread.size.toLong
      val byFormat = Optional.when(skippedByFormat > 0)(live.by -> skippedByFormat)
      counts.toSeq.sortBy(-_._2) ++ byFormat
  }

  private def causeOf(file: Int, verdict: ScanDecision.Verdict): String =
    if (isLimited(file)) limited.get.label
    else if (isAnswered(file)) ReasonCode.AnsweredByStatistics.name
    else verdict.conjuncts.lift(verdict.verdicts.skippedBy(file)).getOrElse(ReasonCode.SkippedEmpty.name)

  /** A part of the scan's equality: equal only for equal statistics and equal files to read. */
  lazy val fingerprint: AnyRef = {
    // Formats plan manifests in parallel: the order of equal scans' files may differ.
    ScanDecision.Fingerprint(version, survivingPaths, outcome.left.toOption.map(_.code.name))
  }

  /** A decision that drops no file, for a reason. */
  def withoutPruning(reason: Reason): ScanDecision = copy(outcome = Left(reason), limited = None)

  /** This decision with the estimate that the optimizer got. */
  def withEstimate(rows: ScanEstimate): ScanDecision = copy(estimate = () => Some(rows))

  /** This decision before the keys of a join exclude files; None if the scan is not pruned. */
  def beforeJoin: Option[ScanDecision] =
    Optional.when(outcome.isRight) {
      copy(limited = None, answered = None, isJoined = true, full = new BitSet, topK = None)
    }

  private[spark] def copy(
      outcome: Either[Reason, ScanDecision.Verdict] = outcome,
      estimate: () => Option[ScanEstimate] = estimate,
      limited: Option[LimitedFiles] = limited,
      answered: Option[BitSet] = answered,
      isJoined: Boolean = isJoined,
      full: BitSet = full,
      topK: Option[Reason] = topK): ScanDecision =
    new ScanDecision(
      table,
      files,
      rows,
      outcome,
      contradictoryFiles,
      version,
      filesWithChanges,
      live,
      estimate,
      limited,
      answered,
      isJoined,
      full,
      question,
      topK)

  /** The text on the scan in EXPLAIN. */
  def label: String = outcome match {
    case Right(_) => fileCountsLabel
    case Left(reason) if reason.code == ReasonCode.Failed => "[Metastore: failed, the log says why]"
    case Left(reason) => s"[Metastore: ${reason.sentence}]"
  }

  private def fileCountsLabel: String = {
    val counts = answered match {
      case Some(answeredFiles) => s"${answeredFiles.cardinality} files answered, $after read"
      case None => s"$total -> $after files"
    }
    val byFormat = Optional.when(skippedByFormat > 0)(s"$skippedByFormat by ${live.by}")
    val byLimit = limited.map(_.label)
    val byJoin = Optional.when(isJoined)("join")
    val remarks = (live.unasked ++ unusedStatistics).map(_.sentence)
    (Seq(counts) ++ byFormat ++ byLimit ++ byJoin ++ remarks).mkString("[Metastore: ", ", ", "]")
  }

  /** The reason why existing statistics could not be used for some conjunct, or None. */
  def unusedStatistics: Option[Reason] = unusedConjuncts.find(reason => ScanDecision.troubles(reason.code))

  /** The reasons why conjuncts could not be used, in the order of the conjuncts. */
  private def unusedConjuncts: Seq[Reason] = {
    val unused = outcome.fold(_ => Map.empty[Int, Reason], _.verdicts.unusedConjuncts)
    for ((_, reason) <- unused.toSeq.sortBy(_._1)) yield reason
  }

  /** The reason why a file is read or skipped. */
  def reason(file: Int): Reason = outcome.fold(identity, reason(file, _))

  private def reason(file: Int, verdict: ScanDecision.Verdict): Reason =
    if (isAnswered(file)) Reason(ReasonCode.AnsweredByStatistics)
    else if (isLimited(file)) limited.get.reason(file)
    else if (filesWithChanges.get(file)) Reason(ReasonCode.KeptLogFiles)
    else if (contradictoryFiles.get(file)) Reason(ReasonCode.KeptContradictory, "column" -> "(row count)")
    else verdict.verdicts.reason(file)

  /** The rows of `metastore.explain`: one for each live data file; one without a path if none is known. */
  def perFile(scan: Int): Seq[FileDecision] = {
    val decided = for (file <- 0 until files.length) yield {
      val count = Optional.when(rows(file) >= 0)(rows(file))
      row(scan, Some(files.paths(file)), survivors.get(file), reason(file), count)
    }
    val byFormat = for ((path, count) <- excludedByFormat)
      yield row(scan, Some(path), isKept = false, Reason(ReasonCode.SkippedByFormat), count)
    val all = decided ++ byFormat
    if (all.isEmpty) outcome.fold(reason => Seq(withoutFiles(scan, reason)), _ => Nil) else all
  }

  private def withoutFiles(scan: Int, reason: Reason): FileDecision =
    row(scan, None, isKept = !ScanDecision.readsNothing(reason.code), reason, None)

  private def row(
      scan: Int,
      path: Option[String],
      isKept: Boolean,
      reason: Reason,
      rows: Option[Long]): FileDecision = {
    val remarks = if (isKept) unusedConjuncts ++ live.unasked ++ topK else Nil
    val sentence = (reason +: remarks).map(_.sentence).distinct.mkString("; ")
    FileDecision(
      scan,
      table,
      path,
      isKept,
      reason.code.name,
      reason.arguments.get("conjunct"),
      reason.arguments.get("statistic"),
      rows,
      rowEstimate,
      sentence)
  }
}

object ScanDecision {
  private val readsNothing = Set[ReasonCode](ReasonCode.AnsweredByFormat, ReasonCode.NoScan)
  private val troubles =
    Set[ReasonCode](ReasonCode.PlanningTimeout, ReasonCode.DamagedObject, ReasonCode.StoreUnreadable)

  /** The verdicts and the conjuncts that they are about. */
  final case class Verdict(verdicts: Verdicts, conjuncts: IndexedSeq[String])

  /** The hash is computed once: Spark compares plans often, and there may be many paths. */
  private final case class Fingerprint(version: String, kept: Set[String], refused: Option[String]) {
    override lazy val hashCode: Int = (version, kept, refused).hashCode
  }

  /** The decision not to prune a scan. */
  def withoutPruning(table: String, reason: Reason): ScanDecision =
    new ScanDecision(table, new FileList(Array.empty, Array.empty), Array.empty, Left(reason), new BitSet, "")
}

/**
 * The filter and limit of a scan, to be evaluated again on the files of a what-if layout.
 *
 * @param wanted the rows that are enough; None if all rows are needed
 */
final case class ScanQuestion(
    table: TableIdentity,
    conjuncts: Seq[Expression],
    columns: ColumnResolver,
    wanted: Option[WantedRows])

/** A row of `metastore.explain(query)`; the columns have the same names. */
final case class FileDecision(
    scan: Int,
    table: String,
    path: Option[String],
    kept: Boolean,
    reason: String,
    conjunct: Option[String],
    statistic: Option[String],
    rows: Option[Long],
    estimate: Option[ScanEstimate],
    sentence: String)

/**
 * All live data files of a scan's snapshot, with those that the table format or the query excludes.
 *
 * @param by      the name of what excludes files: the table format, or the query
 * @param number  the number of live files; None if counting them would list them
 * @param list    lists the paths of the live files, each with its rows
 * @param unasked the reasons why the table format did not get some conjuncts to skip files by
 */
final class LiveFiles(
    val by: String,
    val number: Option[Long],
    val list: () => Seq[(String, Option[Long])],
    val unasked: Seq[Reason] = Nil) {

  /** The number of live files beyond those of a scan; 0 if it is unknown. */
  def beyond(files: Int): Long = number.fold(0L)(all => math.max(0L, all - files))
}

object LiveFiles {

  /** The live files of a scan whose snapshot is unknown. */
  val Unknown: LiveFiles = new LiveFiles("", None, () => Nil)
}

/** The rows of a scan that satisfy its filter, as the optimizer gets them. */
final case class ScanEstimate(rows: Long, source: String, isExact: Boolean)
