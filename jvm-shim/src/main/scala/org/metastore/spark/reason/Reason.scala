package org.metastore.spark.reason

/**
 * Why something was or was not done about one scan, one conjunct or one data file.
 *
 * `metastore.explain`, EXPLAIN, the SQL metrics and the log are all written from values of this class, so that they
 * never contradict each other. Tests compare `code` and `arguments`; people read `sentence`.
 *
 * @param code      what happened
 * @param arguments the facts, by the names that the code's sentence mentions in braces
 */
final case class Reason(code: ReasonCode, arguments: Map[String, String] = Map.empty) {

  /** The code's sentence with the facts filled in. */
  def sentence: String =
    VisibleText(arguments.foldLeft(code.template) { case (text, (name, value)) => text.replace(s"{$name}", value) })

  override def toString: String = s"[${code.name}] $sentence"
}

object Reason {

  /** Builds a reason from its facts: `Reason(ReasonCode.NoStatistics, "table" -> "db.t")`. */
  def apply(code: ReasonCode, first: (String, String), more: (String, String)*): Reason =
    Reason(code, (first +: more).toMap)

  /** Describes an exception that was caught where the user's query must go on. */
  def failure(cause: Throwable): Reason = cause match {
    case known: ReasonedFailure => known.reason
    case other => unknown(other)
  }

  private def unknown(cause: Throwable): Reason =
    Reason(ReasonCode.Failed, "error" -> Option(cause.getMessage).fold(cause.getClass.getName)(m => s"${cause.getClass.getName}: $m"))
}

/** An exception that is itself a reason. */
trait ReasonedFailure extends Throwable {
  def reason: Reason
}

/** One kind of reason: a stable name, and a sentence whose facts stand in braces. */
sealed abstract class ReasonCode(val name: String, val template: String)

/** Every reason that the shim gives. Names are stable: tests and tools depend on them. */
object ReasonCode {

  // Data files
  case object Skipped extends ReasonCode("SKIPPED", "no row can match {conjunct} because of {statistic}")
  case object SkippedByValues extends ReasonCode(
    "SKIPPED_BY_VALUES", "no row can match {conjunct} because of single values in {statistic}")
  case object SkippedEmpty extends ReasonCode("SKIPPED_EMPTY", "the data file has no rows")
  case object SkippedByFormat extends ReasonCode(
    "SKIPPED_BY_FORMAT", "the table format, or the partitions and files that the query names, exclude the data file")
  case object KeptMayMatch extends ReasonCode("KEPT_MAY_MATCH", "rows may match")
  case object KeptFileUnknown extends ReasonCode("KEPT_FILE_UNKNOWN", "the statistics do not know this data file")
  case object KeptColumnUnknown
    extends ReasonCode("KEPT_COLUMN_UNKNOWN", "the statistics do not know column {column} of this data file")
  case object KeptContradictory
    extends ReasonCode("KEPT_CONTRADICTORY", "the statistics of column {column} of this data file contradict themselves")
  case object KeptLogFiles extends ReasonCode("KEPT_LOG_FILES", "log files change rows of this data file")

  // Conjuncts and columns
  case object NotDeterministic extends ReasonCode("NOT_DETERMINISTIC", "{expression} is not deterministic")
  case object Subquery extends ReasonCode("SUBQUERY", "{expression} holds a sub-query or an outer reference")
  case object UserFunction extends ReasonCode("USER_FUNCTION", "{expression} calls a user-defined function")
  case object MetadataColumn extends ReasonCode("METADATA_COLUMN", "{expression} reads a metadata column")
  case object UnknownColumn extends ReasonCode("UNKNOWN_COLUMN", "{column} is not a column with statistics")
  case object TypeChanged
    extends ReasonCode("TYPE_CHANGED", "the statistics of {column} were written for type {written}, not {read}")
  case object Collation extends ReasonCode("COLLATION", "{column} has collation {collation}; bounds hold for UTF8_BINARY")
  case object CharPadding extends ReasonCode("CHAR_PADDING", "{column} is CHAR, whose values are padded when read")
  case object UnsupportedType extends ReasonCode("UNSUPPORTED_TYPE", "bounds of type {type} say nothing about {expression}")
  case object UnsupportedExpression extends ReasonCode("UNSUPPORTED_EXPRESSION", "there is no rule for {expression}")

  // Statistics of a table
  case object NoStatistics extends ReasonCode("NO_STATISTICS", "there are no statistics of {table}; ANALYZE TABLE makes them")
  case object OtherTable
    extends ReasonCode("OTHER_TABLE", "the statistics belong to table {written}, not to {read}: it was dropped and created again")
  case object FormatTooNew extends ReasonCode("FORMAT_TOO_NEW", "the statistics need a newer reader: {needs}")
  case object DamagedObject extends ReasonCode("DAMAGED_OBJECT", "{object} is damaged: {damage}")
  case object PlanningTimeout extends ReasonCode("PLANNING_TIMEOUT", "the statistics took longer than {limit} to read")
  case object StoreUnreadable extends ReasonCode("STORE_UNREADABLE", "the statistics could not be read: {error}")

  // Scans
  case object Pruned extends ReasonCode("PRUNED", "{total} -> {kept} files")
  case object NothingToPrune extends ReasonCode("NOTHING_TO_PRUNE", "no filter of the scan has a rule")
  case object NoFilter extends ReasonCode("NO_FILTER", "the scan has no filter")
  case object Disabled extends ReasonCode("DISABLED", "{setting} is false")
  case object InsideWrite
    extends ReasonCode("INSIDE_WRITE", "the scan feeds a write and spark.metastore.pruneInsideWrites is false")
  case object RowLevelCommand extends ReasonCode("ROW_LEVEL_COMMAND", "{command} reads its own target")
  case object Incremental extends ReasonCode("INCREMENTAL", "incremental and change reads are left alone")
  case object MetadataTable extends ReasonCode("METADATA_TABLE", "metadata tables are left alone")
  case object AnsweredByFormat
    extends ReasonCode("ANSWERED_BY_FORMAT", "the table format answers from its metadata: no data file is read")
  case object RowPolicy extends ReasonCode("ROW_POLICY", "the table has a row filter or a column mask")
  case object UnsupportedTable extends ReasonCode("UNSUPPORTED_TABLE", "{relation} is not a relation that is understood: {detail}")
  case object NeedsRelease extends ReasonCode("NEEDS_RELEASE", "needs {needed}, found {found}")
  case object Failed extends ReasonCode("FAILED", "{error}")

  /** Every code, for `metastore.help()` and the documentation. */
  val all: Seq[ReasonCode] = Seq(
    Skipped, SkippedByValues, SkippedEmpty, SkippedByFormat, KeptMayMatch, KeptFileUnknown, KeptColumnUnknown, KeptContradictory, KeptLogFiles, NotDeterministic, Subquery,
    UserFunction, MetadataColumn, UnknownColumn, TypeChanged, Collation, CharPadding, UnsupportedType, UnsupportedExpression,
    NoStatistics, OtherTable, FormatTooNew, DamagedObject, PlanningTimeout, StoreUnreadable, Pruned, NothingToPrune, NoFilter,
    Disabled, InsideWrite, RowLevelCommand, Incremental, MetadataTable, AnsweredByFormat, RowPolicy, UnsupportedTable, NeedsRelease, Failed)
}
