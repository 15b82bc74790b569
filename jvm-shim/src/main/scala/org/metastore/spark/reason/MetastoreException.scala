package org.metastore.spark.reason

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error for the user in one line: `[CODE] what happened. What to do.` Codes and texts are
 * those of `metastore.errors` in Python. Spark shows an AnalysisException without a stack trace.
 *
 * @param code  stable name, such as METASTORE_NO_STATISTICS
 * @param text  the line without the code
 * @param facts what the line was built from; shown, as the line, so that everything in them can be seen
 */
final class MetastoreException(
    val code: String,
    text: String,
    facts: Map[String, String],
    origin: Option[Throwable] = None)
  extends AnalysisException(
    message = VisibleText(s"[$code] ${MetastoreException.endOnce(text)}"),
    cause = origin,
    errorClass = Some(code),
    messageParameters = facts.map { case (name, fact) => name -> VisibleText(fact) }) {

  /** No stack: a client of Spark Connect would show it, and the cause has its own. */
  override def fillInStackTrace(): Throwable = this

  // Spark sets the caller's stack on an exception that it throws again.
  override def setStackTrace(stack: Array[StackTraceElement]): Unit = ()

  /** The line stays one line: positions in the query say nothing about a table's statistics. */
  override def withPosition(origin: Origin): AnalysisException = this

  /**
   * The error with the argument's name in the user's call, if it is about `inner`, its name in a called
   * function.
   */
  def withArgument(inner: String, argument: String): MetastoreException =
    if (!facts.get("argument").contains(inner)) this
    else new MetastoreException(
      code,
      argument + text.stripPrefix(inner),
      facts.updated("argument", argument),
      origin)
}

/** The error class list. */
object MetastoreException {

  /** Two full stops: the end of a sentence that quotes a sentence. */
  private val TwoStops = "(?<!\\.)\\.\\.(?= |$)".r

  private def endOnce(text: String): String = TwoStops.replaceAllIn(text, ".")

  /**
   * `inStatements` is the table's name in ANALYZE TABLE, `columns` those without statistics (empty: all), and
   * `caveat` a sentence about the statement. Python makes its own error of the facts, and a shell its
   * command.
   */
  def noStatistics(
      table: String,
      inStatements: String,
      detail: String = "",
      columns: String = "",
      caveat: String = ""): MetastoreException = {
    val columnClause = if (columns.isEmpty) "ALL COLUMNS" else s"COLUMNS $columns"
    val command = s"ANALYZE TABLE $inStatements COMPUTE STATISTICS FOR $columnClause"
    val line = s"$table has no statistics$detail.$caveat Run: $command"
    new MetastoreException(
      "METASTORE_NO_STATISTICS",
      line,
      Map(
        "table" -> table,
        "command" -> command,
        "in_statements" -> inStatements,
        "detail" -> detail.trim,
        "columns" -> columns,
        "caveat" -> caveat.trim))
  }

  /** `nearest` are snapshots that were analyzed. */
  def snapshotNotAnalyzed(table: String, detail: String, nearest: Seq[String]): MetastoreException =
    new MetastoreException(
      "METASTORE_NO_STATISTICS",
      s"$table has no statistics$detail. ANALYZE computes them for the current snapshot only. " +
        s"Nearest analyzed snapshots: ${nearest.mkString(", ")}.",
      Map("table" -> table, "detail" -> detail.trim, "analyzed" -> nearest.mkString(", ")))

  /**
   * `parts` are those of the table's name, `names` the last parts of the names of the tables beside it,
   * `missing` says which part of the name is unknown before the last, `elsewhere` how tables of other
   * catalogs are named.
   */
  def tableNotFound(
      parts: Seq[String],
      names: Seq[String],
      missing: String = "",
      elsewhere: String = ""): MetastoreException = {
    val table = SqlName(parts)
    val hint = if (NearNames.find(parts.last, names).isEmpty) elsewhere else ""
    val line = s"There is no table $table.$missing${near(parts, names)}$hint"
    new MetastoreException("METASTORE_TABLE_NOT_FOUND", line, Map("table" -> table))
  }

  /**
   * `parts` are those of the database's name, `names` the last parts of the names of the databases beside it.
   */
  def databaseNotFound(parts: Seq[String], names: Seq[String]): MetastoreException =
    invalidArgument("database", s"there is no database ${SqlName(parts)}", near(parts, names))

  def columnNotFound(column: String, table: String, names: Seq[String]): MetastoreException =
    new MetastoreException(
      "METASTORE_COLUMN_NOT_FOUND",
      s"$table has no column '$column'.${NearNames.hint(column, names)}",
      Map("column" -> column, "table" -> table))

  /** `names` are those of the functions that there are. */
  def functionNotFound(name: String, names: Seq[String]): MetastoreException =
    invalidArgument(
      s"metastore.$name",
      "there is no such table function",
      NearNames.hint(s"metastore.$name", names.map("metastore." + _), "metastore."))

  def unsupportedTable(table: String, reason: String, hint: String = ""): MetastoreException =
    new MetastoreException(
      "METASTORE_UNSUPPORTED_TABLE",
      s"$table is not supported: $reason.$hint",
      Map("table" -> table, "reason" -> reason))

  /** A policy hides rows or values of the table from this user. */
  def rowsHidden(table: String): MetastoreException = unsupportedTable(
    table,
    "this user does not see it as it is: it is a view, it has a row filter or a column mask, or a rule of this session " +
      "adds something to every query, such as a LIMIT, which may hide rows, too")

  /** A policy or a catalog refuses to let this user read the table. */
  def accessDenied(table: String, cause: Throwable): MetastoreException = new MetastoreException(
    "METASTORE_ACCESS_DENIED",
    s"$table cannot be read by this user: ${toldBy(cause)}.",
    Map("table" -> table),
    Some(cause))

  /** A catalog, or a service in front of it, failed. */
  def catalogFailed(table: String, cause: Throwable): MetastoreException = new MetastoreException(
    "METASTORE_CATALOG_FAILED",
    s"$table cannot be looked up: its catalog fails: ${toldBy(cause)}.",
    Map("table" -> table),
    Some(cause))

  /** A failure that is nobody's mistake: memory of the driver, or a class that another version lacks. */
  def failed(subject: String, cause: Throwable): MetastoreException = new MetastoreException(
    "METASTORE_FAILED",
    s"$subject cannot be answered: ${cause.getClass.getName}: ${toldBy(cause)}.",
    Map("table" -> subject),
    Some(cause))

  def invalidArgument(argument: String, reason: String, hint: String = ""): MetastoreException =
    new MetastoreException(
      "METASTORE_INVALID_ARGUMENT",
      s"$argument: $reason.$hint",
      Map("argument" -> argument, "reason" -> reason))

  def invalidSetting(setting: String, value: String, source: String): MetastoreException = {
    val reason = s"it is no value of this setting (it comes from: $source)"
    new MetastoreException(
      "METASTORE_INVALID_SETTING",
      s"$setting = '$value': $reason. $ShowSettings",
      Map(
        "setting" -> setting,
        "value" -> value,
        "source" -> source,
        "reason" -> reason,
        "hint" -> ShowSettings))
  }

  private val ShowSettings = "metastore.settings() shows what is in force."

  /** `hint` names the settings that are near. */
  def noSuchSetting(setting: String, value: String, hint: String): MetastoreException =
    new MetastoreException(
      "METASTORE_INVALID_SETTING",
      s"$setting = '$value': there is no such setting.$hint",
      Map("setting" -> setting, "value" -> value))

  /** Spark's Python for data sources does not have our package. */
  def sourceNotFound(driverPythons: Seq[String], cause: Throwable): MetastoreException = {
    val variable =
      if (sys.env.contains("PYSPARK_DRIVER_PYTHON")) "PYSPARK_DRIVER_PYTHON" else "PYSPARK_PYTHON"
    val workersPython = sys.env.getOrElse(variable, "python3")
    val origin =
      if (sys.env.contains(variable)) s"$variable=$workersPython"
      else s"$workersPython of the PATH, for $variable is not set"
    val other = driverPythons.find(_ != workersPython).getOrElse("python3")
    new MetastoreException(
      "METASTORE_INVALID_SETTING",
      s"Spark finds no data source metastore: it asks the Python of its workers ($origin), which does not have pyspark-metastore. " +
        s"Before Spark starts: export $variable=$other, or another Python that has it.",
      Map("setting" -> variable),
      Some(cause))
  }

  def analyzeFailed(table: String, reason: String, cause: Option[Throwable] = None): MetastoreException =
    new MetastoreException(
      "METASTORE_ANALYZE_FAILED",
      s"ANALYZE of $table failed: $reason",
      Map("table" -> table, "reason" -> reason),
      cause)

  /** The statistics themselves cannot be used. */
  def statisticsUnusable(table: String, cause: StatisticsException): MetastoreException =
    new MetastoreException(
      cause.code,
      s"The statistics of $table cannot be used: ${cause.reason.sentence}.${repair(cause.code, table)}",
      cause.reason.arguments + ("table" -> table),
      Some(cause))

  private def repair(code: String, table: String): String =
    if (code == "METASTORE_DAMAGED_OBJECT") s" Run: metastore analyze $table --repair"
    else ""

  /** The statistics could not be reached. */
  def storeUnreadable(table: String, cause: java.io.IOException): MetastoreException =
    new MetastoreException(
      "METASTORE_STORE_NOT_READABLE",
      s"The statistics of $table could not be read: ${firstLine(cause)}",
      Map("table" -> table),
      Some(cause))

  /** A read did not end in time: storage or a catalog hangs. */
  def timedOut(subject: String, limitMillis: Long): MetastoreException =
    new MetastoreException(
      "METASTORE_STORE_NOT_READABLE",
      s"The statistics of $subject could not be read: there was no answer within $limitMillis ms. " +
        "Where it only takes longer, set spark.metastore.read.timeout.",
      Map("table" -> subject, "limit" -> s"$limitMillis ms"))

  /** The error that our Python raised, if an error of Spark quotes it in a line. */
  def fromPython(wrapped: Exception): Option[MetastoreException] = wrapped match {
    case ours: MetastoreException => Some(ours)
    case other => Option(other.getMessage).flatMap(Raised.findFirstMatchIn).map(quoted =>
        new MetastoreException(quoted.group(1), quoted.group(2), Map.empty))
  }

  /** Spark's error about a query, without the plan that it prints below. */
  def withoutPlan(error: AnalysisException): AnalysisException =
    if (error.getMessage == error.getSimpleMessage) error
    else firstLine(error) match {
      case SparkError(code, text) => new MetastoreException(code, text.stripSuffix(";"), Map.empty)
      case _ => error
    }

  private val SparkError = raw"\[([A-Z0-9_.]+)\] (.*)".r
  private val Raised = raw"metastore\.errors\.\w+: \[(METASTORE_[A-Z_]+)\] ([^\n]*)".r

  private def near(parts: Seq[String], names: Seq[String]): String = {
    val like = NearNames.find(parts.last, names)
    def fullNames(lastParts: Seq[String]) = lastParts.map(name => SqlName(parts.init :+ name))
    if (like.isEmpty) NearNames.listNames(fullNames(names))
    else NearNames.phraseSuggestion(fullNames(like))
  }

  /** The first line of an exception and of its first cause, without a full stop. */
  def toldBy(cause: Throwable): String = {
    val root = causes(cause).last
    val text = firstLine(cause).stripSuffix(".")
    val textOfRoot = firstLine(root).stripSuffix(".")
    if ((root eq cause) || text.contains(textOfRoot)) text
    else s"$text (${root.getClass.getSimpleName}: $textOfRoot)"
  }

  /** An exception and its causes. */
  def causes(e: Throwable): Seq[Throwable] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).toList

  /** The first line of an exception's message. */
  def firstLine(cause: Throwable): String = {
    val message = cause.getMessage
    val line = if (message == null) "" else message.takeWhile(_ != '\n')
    if (line.isEmpty) cause.getClass.getName else line
  }
}

/**
 * The statistics cannot be used. Planners log its `reason` and go on without statistics; SQL functions raise
 * it.
 */
sealed abstract class StatisticsException(val code: String, val reason: Reason, cause: Throwable)
  extends RuntimeException(s"[$code] ${reason.sentence}", cause)

/**
 * An object or a manifest differs from the written one: wrong digest, wrong length, not readable,
 * contradictory.
 */
final class DamagedObjectException(val obj: String, val damage: String, cause: Throwable = None.orNull)
  extends StatisticsException(
    "METASTORE_DAMAGED_OBJECT",
    Reason(ReasonCode.DamagedObject, "object" -> obj, "damage" -> damage),
    cause)

/** A later version wrote the manifest, and it needs features that this reader lacks. */
final class FormatTooNewException(val needs: String)
  extends StatisticsException(
    "METASTORE_FORMAT_TOO_NEW",
    Reason(ReasonCode.FormatTooNew, "needs" -> needs),
    None.orNull)
