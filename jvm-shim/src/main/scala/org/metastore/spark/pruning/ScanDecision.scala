package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.{Attempt, Indexed, Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * The decision on the files of one scan, with its reasons: EXPLAIN, SQL metrics, `metastore.explain` and the log all show it.
 *
 * @param table     the table's name as plans show it
 * @param files     the data files that the table format itself would have read
 * @param rows      physical rows of each file, -1 where unknown
 * @param outcome   the verdict on each file, or why the scan was left alone
 * @param contradictoryFiles files whose statistics contradict the table format: read whatever the verdict says
 * @param version   fingerprint of the statistics, empty where there are none
 * @param filesWithChanges files whose rows other files change: read whatever the verdict says
 * @param live      all data files of the snapshot
 * @param estimate  how many rows satisfy the scan's filter
 * @param limited   files that a LIMIT leaves unread
 * @param answered  files that are not read because the statistics answer an aggregate of their rows
 * @param isJoined  whether the keys of a join choose among the files when the query runs
 * @param full      the files of which every row is live and matches, where a LIMIT may choose files
 * @param question  the question to the statistics; None where there was none
 * @param topK      why an ORDER BY with a LIMIT leaves no file unread
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

  /** The paths of live files without a matching row; none where files are left unread for another reason. */
  def pathsSkipped: Seq[String] =
    if (limited.isDefined || answered.isDefined) Nil
    else skipped.map(files.paths(_)) ++ leftOut.map(_._1)

  /** The paths of the files that are read. */
  def survivingPaths: Set[String] = Indexed.set((0 until before).filter(survivors.get(_)))(files.paths(_))

  private def skipped: Seq[Int] = (0 until before).filterNot(survivors.get(_))

  /** The live files that the table format or the query left out, with their rows. */
  private def leftOut: Seq[(String, Option[Long])] = {
    val paths = files.paths.toSet
    live.list().filterNot { case (path, _) => paths(path) }
  }

  /** Whether the statistics answer an aggregate of some of the files. */
  def isAnswered: Boolean = answered.isDefined

  private def isLimited(file: Int): Boolean = limited.exists(_.dropped.get(file))
  private def isAnswered(file: Int): Boolean = answered.exists(_.get(file))

  /** How many rows satisfy the scan's filter; None where nothing tells. */
  lazy val rowEstimate: Option[ScanEstimate] = Attempt.orNone(estimate()).flatten

  def before: Int = files.length
  def after: Int = survivors.cardinality

  /** Files of the snapshot that the table format or the query left out, as far as they can be counted. */
  val skippedByFormat: Long = live.beyond(before)

  /** Live data files of the snapshot. */
  def total: Long = before + skippedByFormat

  /** Bytes of the files that the decision drops. */
  def bytesSkipped: Long = skipped.map(files.sizes(_)).sum

  /** Each cause of unread files with their number: conjuncts, a LIMIT, the table format. For a scan that was left alone the reason. */
  def unread: Seq[(String, Long)] = outcome match {
    case Left(why) => Seq(why.code.name -> 0L)
    case Right(verdict) =>
      val causes = skipped.map(causeOf(_, verdict))
      val counts = for ((cause, files) <- causes.groupBy(identity)) yield cause -> files.size.toLong
      val byFormat = Optional.when(skippedByFormat > 0)(live.by -> skippedByFormat)
      counts.toSeq.sortBy(-_._2) ++ byFormat
  }

  private def causeOf(file: Int, verdict: ScanDecision.Verdict): String =
    if (isLimited(file)) limited.get.label
    else if (isAnswered(file)) ReasonCode.AnsweredByStatistics.name
    else verdict.conjuncts.lift(verdict.verdicts.skippedBy(file)).getOrElse(ReasonCode.SkippedEmpty.name)

  /** Equal only for equal statistics and equal files kept: a part of the scan's equality. */
  lazy val fingerprint: AnyRef = {
    // Formats plan manifests in parallel: the order of equal scans' files may differ.
    ScanDecision.Fingerprint(version, survivingPaths, outcome.left.toOption.map(_.code.name))
  }

  /** The decision to drop no file, for a reason. */
  def withoutPruning(why: Reason): ScanDecision = copy(outcome = Left(why), limited = None)

  /** The decision with the estimate that the optimizer got. */
  def withEstimate(rows: ScanEstimate): ScanDecision = copy(estimate = () => Some(rows))

  /** The decision before the keys of a join choose among the files; None where the scan was left alone. */
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
    case Right(_) => labelOfFiles
    case Left(reason) if reason.code == ReasonCode.Failed => "[Metastore: failed, the log says why]"
    case Left(reason) => s"[Metastore: ${reason.sentence}]"
  }

  private def labelOfFiles: String = {
    val files = answered.fold(s"$total -> $after files") { known =>
      s"${known.cardinality} files answered, $after read"
    }
    val byFormat = Optional.when(skippedByFormat > 0)(s"$skippedByFormat by ${live.by}")
    val byLimit = limited.map(_.label)
    val byJoin = Optional.when(isJoined)("join")
    val remarks = (live.unasked ++ unusedStatistics).map(_.sentence)
    (Seq(files) ++ byFormat ++ byLimit ++ byJoin ++ remarks).mkString("[Metastore: ", ", ", "]")
  }

  /** Why statistics that exist could not be used for some conjunct. */
  def unusedStatistics: Option[Reason] = unusedConjuncts.find(why => ScanDecision.troubles(why.code))

  /** Why conjuncts could not be used, in their order. */
  private def unusedConjuncts: Seq[Reason] = {
    val unused = outcome.fold(_ => Map.empty[Int, Reason], _.verdicts.unusedConjuncts)
    for ((_, why) <- unused.toSeq.sortBy(_._1)) yield why
  }

  /** Why a file is read or not. */
  def reason(file: Int): Reason = outcome.fold(identity, reason(file, _))

  private def reason(file: Int, verdict: ScanDecision.Verdict): Reason =
    if (isAnswered(file)) Reason(ReasonCode.AnsweredByStatistics)
    else if (isLimited(file)) limited.get.why(file)
    else if (filesWithChanges.get(file)) Reason(ReasonCode.KeptLogFiles)
    else if (contradictoryFiles.get(file)) Reason(ReasonCode.KeptContradictory, "column" -> "(row count)")
    else verdict.verdicts.reason(file)

  /** One row for each live data file, as `metastore.explain` shows them; one without a path where no files are known. */
  def perFile(scan: Int): Seq[FileDecision] = {
    val decided = for (file <- 0 until files.length) yield {
      val count = Optional.when(rows(file) >= 0)(rows(file))
      row(scan, Some(files.paths(file)), survivors.get(file), reason(file), count)
    }
    val byFormat = for ((path, count) <- leftOut)
      yield row(scan, Some(path), isKept = false, Reason(ReasonCode.SkippedByFormat), count)
    val all = decided ++ byFormat
    if (all.isEmpty) outcome.fold(why => Seq(withoutFiles(scan, why)), _ => Nil) else all
  }

  private def withoutFiles(scan: Int, why: Reason): FileDecision =
    row(scan, None, isKept = !ScanDecision.readsNothing(why.code), why, None)

  private def row(
      scan: Int,
      path: Option[String],
      isKept: Boolean,
      why: Reason,
      rows: Option[Long]): FileDecision = {
    val remarks = if (isKept) unusedConjuncts ++ live.unasked ++ topK else Nil
    val sentence = (why +: remarks).map(_.sentence).distinct.mkString("; ")
    FileDecision(
      scan,
      table,
      path,
      isKept,
      why.code.name,
      why.arguments.get("conjunct"),
      why.arguments.get("statistic"),
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

  /** Plans ask for the hash often, and there may be many paths. */
  private final case class Fingerprint(version: String, kept: Set[String], refused: Option[String]) {
    override lazy val hashCode: Int = (version, kept, refused).hashCode
  }

  /** The decision to leave a scan alone. */
  def withoutPruning(table: String, why: Reason): ScanDecision =
    new ScanDecision(table, new FileList(Array.empty, Array.empty), Array.empty, Left(why), new BitSet, "")
}

/**
 * The question of a scan to the statistics of its table, to be asked again of imagined files.
 *
 * @param wanted the rows that are enough; None: all are wanted
 */
final case class ScanQuestion(
    table: TableIdentity,
    conjuncts: Seq[Expression],
    columns: ColumnResolver,
    wanted: Option[WantedRows])

/** A row of `metastore.explain(query)`: columns of the same names. */
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
 * The live data files of the snapshot that a scan reads, before the table format and the query's own filters leave some of them out.
 *
 * @param by      who leaves files out
 * @param number  their number; `None` where counting them would list them
 * @param unasked reasons why the table format was not to skip files by some conjuncts
 */
final class LiveFiles(
    val by: String,
    val number: Option[Long],
    val list: () => Seq[(String, Option[Long])],
    val unasked: Seq[Reason] = Nil) {

  /** The number of live files beyond those of a scan, as far as they can be counted. */
  def beyond(files: Int): Long = number.fold(0L)(all => math.max(0L, all - files))
}

object LiveFiles {

  /** The live files of a scan whose snapshot is unknown. */
  val Unknown: LiveFiles = new LiveFiles("", None, () => Nil)
}

/** The rows of a scan that satisfy its filter, as the optimizer gets them. */
final case class ScanEstimate(rows: Long, source: String, isExact: Boolean)
