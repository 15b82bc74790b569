package org.metastore.spark.pruning

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.reason.{Attempt, Indexed, Reason, ReasonCode}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * What was decided about one scan, and why: EXPLAIN, SQL metrics, `metastore.explain` and the log all read it here.
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
 * @param limited   what a LIMIT leaves unread
 * @param answered  what is not read because the statistics tell what an aggregate asks of its rows
 * @param isJoined  the keys of a join choose among the files when the query runs
 * @param full      the files of which every row is live and matches, where it was asked which rows are enough
 * @param question  what was asked of the statistics; None where nothing was
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
    !isLimited(file) && !isAnswered(file) &&
    (filesWithChanges.get(file) || contradictoryFiles.get(file) || outcome.fold(
      _ => true,
      _.verdicts.isKept(file)))
  }

  /** Those among them that may still be excluded by what their statistics say. */
  def excludable: BitSet = FileSets.without(FileSets.without(survivors, filesWithChanges), contradictoryFiles)

  /** The paths of live files that hold no row that matches; none where a LIMIT has left files unread. */
  def pathsSkipped: Seq[String] = if (limited.isDefined || answered.isDefined) Nil
  else skipped.map(files.paths(_)) ++ leftOut.map(_._1)

  /** The paths of the files that are read. */
  def survivingPaths: Set[String] = Indexed.set((0 until before).filter(survivors.get(_)))(files.paths(_))

  private def skipped: Seq[Int] = (0 until before).filterNot(survivors.get(_))

  /** The live files that were not left to us, with their rows. */
  private def leftOut: Seq[(String, Option[Long])] = {
    val paths = files.paths.toSet
    live.list().filterNot { case (path, _) => paths(path) }
  }

  /** Whether the statistics answer an aggregate of files, and no more than these are read. */
  def isAnswered: Boolean = answered.isDefined

  private def isLimited(file: Int): Boolean = limited.exists(_.dropped.get(file))
  private def isAnswered(file: Int): Boolean = answered.exists(_.get(file))

  /** How many rows satisfy the scan's filter; None where nothing tells. */
  lazy val rowEstimate: Option[ScanEstimate] = Attempt.orNone(estimate()).flatten

  def before: Int = files.length
  def after: Int = survivors.cardinality

  /** Files of the snapshot that were not left to us, as far as they can be counted. */
  val skippedByFormat: Long = live.beyond(before)

  /** Live data files of the snapshot. */
  def total: Long = before + skippedByFormat

  /** Bytes of the files that were left to us and are not read. */
  def bytesSkipped: Long = skipped.map(files.sizes(_)).sum

  /** What left data files unread, and how many: conjuncts, a LIMIT, the table format. Of a scan that was left alone the reason. */
  def unread: Seq[(String, Long)] = outcome match {
    case Left(why) =>
      Seq(why.code.name -> 0L)
    case Right(verdict) =>
      val by = for (file <- skipped) yield {
        if (isLimited(file)) limited.get.label
        else if (isAnswered(file)) ReasonCode.AnsweredByStatistics.name
        else verdict.conjuncts.lift(verdict.verdicts.skippedBy(file)).getOrElse(ReasonCode.SkippedEmpty.name)
      }
      val counted = for ((what, files) <- by.groupBy(identity)) yield what -> files.size.toLong
      counted.toSeq.sortBy(-_._2) ++ Seq(live.by -> skippedByFormat).filter(_._2 > 0)
  }

  /** Equal only for equal statistics and equal files kept: belongs into equality of the scan. */
  lazy val fingerprint: AnyRef = {
    // Formats plan manifests in parallel: the order of equal scans' files may differ.
    ScanDecision.Fingerprint(version, survivingPaths, outcome.left.toOption.map(_.code.name))
  }

  /** The same scan if no file of it is dropped, for another reason. */
  def withoutPruning(why: Reason): ScanDecision = copy(Left(why), estimate, None)

  /** The same scan with the number that the optimizer was told. */
  def withEstimate(told: ScanEstimate): ScanDecision = copy(outcome, () => Some(told), limited)

  /** The same scan if the keys of a join choose among its files later; None where nothing was decided about them yet. */
  def beforeJoin: Option[ScanDecision] =
    if (outcome.isLeft) None
    else Some(new ScanDecision(
      table,
      files,
      rows,
      outcome,
      contradictoryFiles,
      version,
      filesWithChanges,
      live,
      estimate,
      isJoined = true,
      question = question))

  private def copy(
      outcome: Either[Reason, ScanDecision.Verdict],
      estimate: () => Option[ScanEstimate],
      limited: Option[LimitedFiles]): ScanDecision =
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
    case Right(_) =>
      val byFormat = if (skippedByFormat > 0) s", $skippedByFormat by ${live.by}" else ""
      val byLimit = limited.fold("")(unread => s", ${unread.label}")
      val files =
        answered.fold(s"$total -> $after files")(known => s"${known.cardinality} files answered, $after read")
      val byJoin = if (isJoined) ", join" else ""
      val remarks = (live.unasked ++ unusedStatistics).map(why => s", ${why.sentence}").mkString
      s"[Metastore: $files$byFormat$byLimit$byJoin$remarks]"
    case Left(reason) if reason.code == ReasonCode.Failed => "[Metastore: failed, the log says why]"
    case Left(reason) =>
      s"[Metastore: ${reason.sentence}]"
  }

  /** Why statistics that exist could not be used for some conjunct. */
  def unusedStatistics: Option[Reason] =
    outcome.toOption.toSeq.flatMap(_.verdicts.unusedConjuncts.values).find(why =>
      ScanDecision.troubles(why.code))

  /** Why a file is read or not. */
  def reason(file: Int): Reason = outcome match {
    case Left(why) => why
    case Right(_) if isAnswered(file) =>
      Reason(ReasonCode.AnsweredByStatistics)
    case Right(_) if isLimited(file) =>
      limited.get.why(file)
    case Right(_) if filesWithChanges.get(file) =>
      Reason(ReasonCode.KeptLogFiles)
    case Right(_) if contradictoryFiles.get(file) =>
      Reason(ReasonCode.KeptContradictory, "column" -> "(row count)")
    case Right(verdict) =>
      verdict.verdicts.reason(file)
  }

  /** One row a live data file, as `metastore.explain` shows them; one without a path where no files are known. */
  def perFile(scan: Int): Seq[FileDecision] = {
    val left = (0 until files.length).map { file =>
      row(scan, Some(files.paths(file)), survivors.get(file), reason(file), Some(rows(file)).filter(_ >= 0))
    }
    val all = left ++ leftOut.map { case (path, number) =>
      row(scan, Some(path), isKept = false, Reason(ReasonCode.SkippedByFormat), number)
    }
    if (all.nonEmpty) all
    else outcome.left.toOption.toSeq.map(why =>
      row(scan, None, isKept = !ScanDecision.readsNothing(why.code), why, None))
  }

  private def row(scan: Int, path: Option[String], isKept: Boolean, why: Reason, rows: Option[Long]) = {
    val unused = if (isKept)
      outcome.toOption.toSeq.flatMap(_.verdicts.unusedConjuncts.toSeq.sortBy(_._1).map(_._2))
    else Nil
    val ofScan = if (isKept) live.unasked ++ topK else Nil
    val sentence = (why +: (unused ++ ofScan)).map(_.sentence).distinct.mkString("; ")
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

  /** A scan that is read as without us. */
  def withoutPruning(table: String, why: Reason): ScanDecision =
    new ScanDecision(table, new FileList(Array.empty, Array.empty), Array.empty, Left(why), new BitSet, "")
}

/**
 * What a scan asks of the statistics of its table, to be asked again of files that are imagined.
 *
 * @param wanted so many rows are enough; None: all
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
 * The live data files of the snapshot that a scan reads, before the table format and the query's own choice of files and
 * partitions leave some to us.
 *
 * @param number  how many there are; `None` where counting them would list them
 * @param unasked conjuncts by which the table format was to skip nothing, each with the reason
 */
final class LiveFiles(
    val by: String,
    val number: Option[Long],
    val list: () => Seq[(String, Option[Long])],
    val unasked: Seq[Reason] = Nil) {

  /** How many there are beyond the files of a scan, as far as they can be counted. */
  def beyond(files: Int): Long = number.fold(0L)(all => math.max(0L, all - files))
}

object LiveFiles {

  /** Of a scan of which nothing is known. */
  val Unknown: LiveFiles = new LiveFiles("", None, () => Nil)
}

/** How many rows of a scan satisfy its filter, as the optimizer is told. */
final case class ScanEstimate(rows: Long, source: String, isExact: Boolean)
