package org.metastore.spark.sql

import java.io.IOException
import java.util.Locale
import java.util.concurrent.TimeoutException

import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.analysis.{TableFunctionRegistry, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions.{
  Cast, Expression, ExpressionInfo, Literal, NamedArgumentExpression, RuntimeReplaceable,
  TimeZoneAwareExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{BinaryText, MetastoreException, NearNames, SqlName, StatisticsException}
import org.metastore.spark.statistics.objects.SummaryRow
import org.metastore.spark.tables.UnsupportedRelease

/** Every table function there is, and how Spark gets to know them. */
object TableFunctions {
  private val all: Seq[TableFunction] = Seq(
    SummaryFunction,
    FrequenciesFunction,
    HistogramFunction,
    QuantilesFunction,
    LocateFunction,
    FilesFunction,
    ColumnsFunction,
    LayoutFunction,
    FilteredSummaryFunction,
    ExplainFunction,
    WhatIfFunction,
    EstimatesFunction,
    HistoryFunction,
    SnapshotsFunction,
    DiffFunction,
    TablesFunction,
    SettingsFunction,
    HelpFunction,
    VersionFunction,
    FactsFunction,
    FilterFunction,
    FormatsFunction)

  /** Those that people call, in the order in which `metastore.help()` lists them. */
  val listed: Seq[TableFunction] = all.filterNot(_.isInternal)

  val names: Seq[String] = listed.map(_.name)

  /** The function of a name that the contract has. */
  def named(name: String): TableFunction = all.find(_.name == name).get

  /**
   * Makes the functions built-ins of Spark: persistent views refuse injected ones, which count as temporary. The registry is
   * the JVM's, so this is done once however many sessions there are.
   */
  def register(): Unit = all.foreach { function =>
    val identifier = FunctionIdentifier(s"metastore_${function.name}")
    val registry = TableFunctionRegistry.builtin
    if (!registry.functionExists(identifier)) {
      registry.registerFunction(
        identifier,
        info(function),
        (arguments: Seq[Expression]) => plan(function, arguments))
    }
  }

  /** A call as a plan, with fresh attributes. Nothing is read yet. */
  private def plan(function: TableFunction, arguments: Seq[Expression]): LogicalPlan = {
    val session = SparkSession.active
    MetastoreConf.requireValid(session, function.usedSettings)
    val call = Arguments.bind(function, arguments)
    val limit = if (function.isLimited) Some(MetastoreConf.of(session).readTimeoutMillis) else None
    FunctionCall(
      DataTypeUtils.toAttributes(function.schema),
      function.name,
      call,
      Answer.InAnalysis { output =>
        readWithinLimit(subject(arguments), limit) {
          function.jobRows(session, call) match {
            case Some(run) =>
              FunctionCall(output, function.name, call, Answer.InExecution(new StatementMemo(session, run)))
            case None => LocalRelation(output, function.rows(session, call))
          }
        }
      })
  }

  /** The function that SQL calls by a name in one part. */
  private[sql] def called(name: Seq[String]): Option[TableFunction] =
    listed.find(function => name.map(_.toLowerCase(Locale.ROOT)) == Seq(s"metastore_${function.name}"))

  /** What a call is about, as it was written: its first argument. */
  private def subject(arguments: Seq[Expression]): String =
    arguments.headOption.map(Arguments.valueOf) match {
      case Some(Literal(text: UTF8String, _)) => text.toString
      case other => other.fold("the table")(_.sql)
    }

  /** Reads within `spark.metastore.read.timeout`, and says in one line why the statistics of `asked` cannot be read. */
  private[sql] def readWithinLimit[T](session: SparkSession, asked: => String)(read: => T): T =
    readWithinLimit(asked, Some(MetastoreConf.of(session).readTimeoutMillis))(read)

  private def readWithinLimit[T](asked: => String, limitMillis: Option[Long])(read: => T): T =
    try ReadThread.run(limitMillis)(read)
    catch {
      case _: TimeoutException => throw MetastoreException.timedOut(asked, limitMillis.getOrElse(0L))
      case e: StatisticsException => throw MetastoreException.statisticsUnusable(asked, e)
      case e: IOException => throw MetastoreException.storeUnreadable(asked, e)
      case e: AnalysisException => throw MetastoreException.withoutPlan(e)
      case e: UnsupportedRelease =>
        throw MetastoreException.unsupportedTable(asked, s"it ${e.reason.sentence}")
      case e @ (_: VirtualMachineError | _: LinkageError) => throw MetastoreException.failed(asked, e)
    }

  private def info(function: TableFunction): ExpressionInfo = {
    val usage =
      s"metastore.${function.name}(${function.arguments.map(_.name).mkString(", ")}) - ${function.meaning}"
    new ExpressionInfo(
      function.getClass.getName,
      "",
      s"metastore_${function.name}",
      usage,
      "",
      "",
      "",
      "table_funcs",
      "0.1.0",
      "",
      "built-in")
  }
}

/** One argument of a table function, and what it is where it is not given. */
final case class Argument(name: String, required: Boolean, default: Option[Literal])

/**
 * A table function `metastore.<name>`, as `contract/functions.json` declares it: reads, never writes, never starts a job, unless it is deferred.
 *
 * The rows are made when the query is analyzed, so the answer of a view is as new as the query that reads it; by a thread of
 * their own, while no lock of Spark is held.
 */
abstract class TableFunction(val name: String) {
  protected val declared: JsonNode = TableFunction.declared(name)

  val arguments: Seq[Argument] =
    Contract.named(declared.get("arguments")).map { case (argument, one) =>
      Argument(
        argument,
        one.get("required").asBoolean,
        Option(one.get("default")).map(text => Literal(text.asText)))
    }

  lazy val schema: StructType = {
    val columns = StructType.fromDDL(Contract.texts(declared, "columns").mkString(", "))
    val comments = Option(declared.get("comments"))
    StructType(columns.map { column =>
      val comment = comments.flatMap(texts => Option(texts.get(column.name)))
      comment.fold(column)(text => column.withComment(text.asText))
    })
  }

  /** One sentence for `metastore.help()`. */
  def meaning: String = declared.get("meaning").asText

  /** Whether our own Python asks it: it is not listed, and not called by people. */
  def isInternal: Boolean = declared.path("internal").asBoolean

  /** Whose settings have to have values that they can have. */
  def usedSettings: Set[String] =
    if (declared.has("settings")) Contract.texts(declared, "settings").toSet else Set("read")

  /** Whether `spark.metastore.read.timeout` ends a call. */
  def isLimited: Boolean = declared.path("limited").asBoolean(true)

  /**
   * What makes the rows when the statement is executed; None where they are made when it is analyzed.
   *
   * @throws MetastoreException what the user has to know at once
   */
  def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = None

  /**
   * The answer, in Catalyst's internal values of `schema`.
   *
   * @throws MetastoreException what the user has to know instead: no such table, no statistics, ...
   */
  def rows(session: SparkSession, call: Arguments): Seq[InternalRow]
}

private object TableFunction {
  private val declared: Map[String, JsonNode] =
    Contract.named(Contract.read("functions").get("functions")).toMap
}

/** A table function whose rows are made of stored statistics: the data source shows these, typed, beside the texts. */
abstract class StatisticsFunction(name: String) extends TableFunction(name) {
  override final def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    rowsWithStatistics(session, call).map(_._1)

  /** The rows of the function, each with the statistics that it shows, if there are any. */
  def rowsWithStatistics(session: SparkSession, call: Arguments): Seq[(InternalRow, Option[SummaryRow])]
}

/**
 * The values that one call gives to a function's arguments; an argument given as NULL counts as not given.
 *
 * @param keeps whether a row with this text in this column is asked for, as far as a query's filters tell; more may be given
 */
final class Arguments(
    function: TableFunction,
    values: Map[String, Literal],
    val keeps: (String, String) => Boolean = (_, _) => true) {

  /** The text of an argument that must be there. */
  def text(name: String): String =
    optional(name).getOrElse(throw MetastoreException.invalidArgument(
      s"metastore.${function.name}",
      s"$name is NULL"))

  /** The text of an argument, if given. */
  def optional(name: String): Option[String] = value(name).map {
    case Literal(text: UTF8String, _) => text.toString
    case other => Arguments.cast(other, StringType).toString
  }

  /** The number of an argument, if given, which has to be whole and positive. */
  def positive(name: String): Option[Int] = optional(name).map { text =>
    // Not by CAST, which takes 2.5 for 2.
    Try(new java.math.BigDecimal(text.trim).intValueExact).toOption.filter(_ > 0)
      .getOrElse(throw MetastoreException.invalidArgument(name, s"$text is not a positive whole number"))
  }

  /** Whether an argument is true; not given is false. */
  def flag(name: String): Boolean = optional(name).exists { text =>
    text.trim.toLowerCase(Locale.ROOT) match {
      case "true" => true
      case "false" => false
      case _ => throw MetastoreException.invalidArgument(name, s"$text is neither true nor false")
    }
  }

  /** An argument as it was given. */
  def value(name: String): Option[Literal] =
    values.get(
      name).filter(_.value != null).orElse(function.arguments.find(_.name == name).flatMap(_.default))
}

object Arguments {

  /** Binds what stands in the parentheses of a call: by position first, then by name. */
  def bind(function: TableFunction, expressions: Seq[Expression]): Arguments = {
    val (positional, named) = expressions.span(!_.isInstanceOf[NamedArgumentExpression])
    if (positional.length > function.arguments.length) {
      throw wrong(
        function,
        s"takes at most ${function.arguments.length} arguments, not ${expressions.length}")
    }
    val byPosition = function.arguments.map(_.name).zip(positional)
    val pairs = byPosition ++ named.map(nameAndValue(function, _))
    pairs.groupBy(_._1).find(_._2.length > 1).foreach { case (name, _) =>
      throw wrong(function, s"$name is given twice")
    }
    val values = pairs.map { case (name, expression) => name -> constant(function, name, expression) }.toMap
    function.arguments.find(a => a.required && !values.contains(a.name))
      .foreach(missing => throw wrong(function, s"the argument ${missing.name} is missing"))
    new Arguments(function, values)
  }

  private def nameAndValue(function: TableFunction, expression: Expression): (String, Expression) =
    expression match {
      case NamedArgumentExpression(key, value) =>
        val name = key.toLowerCase(Locale.ROOT)
        val known = function.arguments.map(_.name)
        if (!known.contains(name))
          throw wrong(function, s"there is no argument $key", NearNames.hint(key, known))
        name -> value
      case _ => throw wrong(function, "an argument by position follows one by name")
    }

  private def constant(function: TableFunction, name: String, expression: Expression): Literal = {
    if (!expression.resolved || !expression.foldable) {
      throw wrong(function, s"the argument $name must be a constant, not ${expression.sql}")
    }
    val zone = SQLConf.get.sessionLocalTimeZone
    val evaluable = expression.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
      .transform {
        case aware: TimeZoneAwareExpression if aware.timeZoneId.isEmpty => aware.withTimeZone(zone)
      }
    Literal(evaluable.eval(), expression.dataType)
  }

  /** What is given, by position or by name. */
  private[sql] def valueOf(expression: Expression): Expression = expression match {
    case NamedArgumentExpression(_, value) => value
    case value => value
  }

  /** Refuses a first argument without quotes, which Spark takes for a column. */
  private[sql] def requireQuotes(function: TableFunction, expressions: Seq[Expression]): Unit =
    expressions.headOption.map(valueOf) match {
      case Some(UnresolvedAttribute(parts)) =>
        val name = SqlName(parts)
        throw wrong(
          function,
          s"$name is no text",
          s" Name it as one: metastore.${function.name}(${Literal(name).sql}).")
      case _ => ()
    }

  /** A value as people write it: texts in quotes, bytes as `X'00FF'`, numbers without the suffix of their type. */
  private[sql] def toText(literal: Literal): String = literal.value match {
    case _ if literal.dataType == StringType => literal.sql
    case bytes: Array[Byte] => BinaryText.render(bytes)
    case _ => Option(cast(literal, StringType)).fold("NULL")(_.toString)
  }

  /** A value in another type, by Spark's CAST in the session's time zone; null where it cannot be. */
  private[sql] def cast(literal: Literal, to: DataType): Any =
    Cast(literal, to, Some(SQLConf.get.sessionLocalTimeZone), ansiEnabled = false).eval()

  private def wrong(function: TableFunction, reason: String, hint: String = "") =
    MetastoreException.invalidArgument(s"metastore.${function.name}", reason, hint)
}
