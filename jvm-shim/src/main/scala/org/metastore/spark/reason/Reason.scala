package org.metastore.spark.reason

import org.metastore.spark.contract.Contract

/**
 * Why something was or was not done about one scan, one conjunct or one data file.
 *
 * `metastore.explain`, EXPLAIN, the SQL metrics and the log are all written from values of this class, so
 * that they never contradict each other. Tests compare `code` and `arguments`; people read `sentence`.
 *
 * @param code      what happened
 * @param arguments the facts, by the names that the code's sentence mentions in braces
 */
final case class Reason(code: ReasonCode, arguments: Map[String, String] = Map.empty) {

  /** The code's sentence with the facts filled in. */
  def sentence: String =
    VisibleText(arguments.foldLeft(code.template) { case (text, (name, value)) =>
      text.replace(s"{$name}", value)
    })

  override def toString: String = s"[${code.name}] $sentence"
}

object Reason {

  /** Builds a reason from its facts: `Reason(ReasonCode.NoStatistics, "table" -> "db.t")`. */
  def apply(code: ReasonCode, first: (String, String), more: (String, String)*): Reason =
    Reason(code, (first +: more).toMap)

  /** Describes an exception that was caught where the user's query must go on. */
  def failure(cause: Throwable): Reason = cause match {
    case reasoned: ReasonedFailure => reasoned.reason
    case other => unknown(other)
  }

  private def unknown(cause: Throwable): Reason =
    Reason(
      ReasonCode.Failed,
      "error" -> Option(cause.getMessage).fold(cause.getClass.getName)(m => s"${cause.getClass.getName}: $m"))
}

/** An exception that is itself a reason. */
trait ReasonedFailure extends Throwable {
  def reason: Reason
}

/** Planning a query has taken longer than `spark.metastore.planning.timeout`. */
final class PlanningTimeoutException private (override val reason: Reason)
  extends RuntimeException(reason.sentence)
  with ReasonedFailure {
  def this(limitMillis: Long) = this(Reason(ReasonCode.PlanningTimeout, "limit" -> s"$limitMillis ms"))
}

/** A kind of reason: a stable name, and a sentence with its facts in braces. */
final case class ReasonCode private (name: String, template: String)

/**
 * Every reason that the shim gives, from `contract/reasons.json`. Names are stable: tests and tools depend on
 * them.
 */
object ReasonCode {

  /** Every code. */
  val all: Seq[ReasonCode] =
    for ((name, entry) <- Contract.named(Contract.read("reasons")))
      yield new ReasonCode(name, entry.get("sentence").asText)

  val Skipped: ReasonCode = find("SKIPPED")
  val SkippedByValues: ReasonCode = find("SKIPPED_BY_VALUES")
  val SkippedEmpty: ReasonCode = find("SKIPPED_EMPTY")
  val SkippedByLimit: ReasonCode = find("SKIPPED_BY_LIMIT")
  val SkippedByTopK: ReasonCode = find("SKIPPED_BY_TOP_K")
  val AnsweredByStatistics: ReasonCode = find("ANSWERED_BY_STATISTICS")
  val SkippedByFormat: ReasonCode = find("SKIPPED_BY_FORMAT")
  val KeptMayMatch: ReasonCode = find("KEPT_MAY_MATCH")
  val KeptFileUnknown: ReasonCode = find("KEPT_FILE_UNKNOWN")
  val KeptColumnUnknown: ReasonCode = find("KEPT_COLUMN_UNKNOWN")
  val KeptContradictory: ReasonCode = find("KEPT_CONTRADICTORY")
  val KeptLogFiles: ReasonCode = find("KEPT_LOG_FILES")

  val NotDeterministic: ReasonCode = find("NOT_DETERMINISTIC")
  val Subquery: ReasonCode = find("SUBQUERY")
  val UserFunction: ReasonCode = find("USER_FUNCTION")
  val MetadataColumn: ReasonCode = find("METADATA_COLUMN")
  val UnknownColumn: ReasonCode = find("UNKNOWN_COLUMN")
  val TypeChanged: ReasonCode = find("TYPE_CHANGED")
  val Collation: ReasonCode = find("COLLATION")
  val CharPadding: ReasonCode = find("CHAR_PADDING")
  val FormatNotAsked: ReasonCode = find("FORMAT_NOT_ASKED")
  val UnsupportedExpression: ReasonCode = find("UNSUPPORTED_EXPRESSION")

  val NoStatistics: ReasonCode = find("NO_STATISTICS")
  val OtherTable: ReasonCode = find("OTHER_TABLE")
  val FormatTooNew: ReasonCode = find("FORMAT_TOO_NEW")
  val DamagedObject: ReasonCode = find("DAMAGED_OBJECT")
  val PlanningTimeout: ReasonCode = find("PLANNING_TIMEOUT")
  val StoreUnreadable: ReasonCode = find("STORE_UNREADABLE")

  val NothingToPrune: ReasonCode = find("NOTHING_TO_PRUNE")
  val NoScan: ReasonCode = find("NO_SCAN")
  val NoFilter: ReasonCode = find("NO_FILTER")
  val TopKOverlap: ReasonCode = find("TOP_K_OVERLAP")
  val TopKUnknown: ReasonCode = find("TOP_K_UNKNOWN")
  val Disabled: ReasonCode = find("DISABLED")
  val InsideWrite: ReasonCode = find("INSIDE_WRITE")
  val RowLevelCommand: ReasonCode = find("ROW_LEVEL_COMMAND")
  val FilesOfSubquery: ReasonCode = find("FILES_OF_SUBQUERY")
  val Incremental: ReasonCode = find("INCREMENTAL")
  val MetadataTable: ReasonCode = find("METADATA_TABLE")
  val AnsweredByFormat: ReasonCode = find("ANSWERED_BY_FORMAT")
  val RowPolicy: ReasonCode = find("ROW_POLICY")
  val UnsupportedTable: ReasonCode = find("UNSUPPORTED_TABLE")
  val NeedsRelease: ReasonCode = find("NEEDS_RELEASE")
  val Failed: ReasonCode = find("FAILED")

  private def find(name: String): ReasonCode = all.find(_.name == name).get
}
