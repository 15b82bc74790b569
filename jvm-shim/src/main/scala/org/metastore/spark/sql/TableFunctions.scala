package org.metastore.spark.sql

import java.io.IOException
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal, NamedArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.MetastoreConf
import org.metastore.spark.sql.functions._
import org.metastore.spark.store.StatisticsException
import org.metastore.spark.tables.UnsupportedRelease

/** Every table function there is, and how Spark gets to know them. */
object TableFunctions {

  /** In the order in which `metastore.help()` lists them. */
  val all: Seq[TableFunction] = Seq(
    SummaryFunction, FrequenciesFunction, HistogramFunction, QuantilesFunction, LocateFunction, FilesFunction, ColumnsFunction,
    ExplainFunction, EstimatesFunction, SnapshotsFunction, TablesFunction, SettingsFunction, HelpFunction, VersionFunction)

  /** What our own Python asks of the session: not listed, and not called by people. */
  private val internal: Seq[TableFunction] = Seq(FactsFunction, FormatsFunction)

  val names: Set[String] = all.map(_.name).toSet

  /**
   * Makes the functions built-ins of Spark: persistent views refuse injected ones, which count as temporary. The registry is
   * the JVM's, so this is done once however many sessions there are.
   */
  def register(): Unit = (all ++ internal).foreach { function =>
    val identifier = FunctionIdentifier(s"metastore_${function.name}")
    val registry = TableFunctionRegistry.builtin
    if (!registry.functionExists(identifier)) {
      registry.registerFunction(identifier, info(function), (arguments: Seq[Expression]) => plan(function, arguments))
    }
  }

  /** A call as a plan, with fresh attributes. Nothing is read yet. */
  private def plan(function: TableFunction, arguments: Seq[Expression]): LogicalPlan = {
    val session = SparkSession.active
    if (function.needsSettings) MetastoreConf.requireValid(session)
    val call = Arguments.bind(function, arguments)
    val limit = if (function.isLimited(call)) Some(MetastoreConf.of(session).readTimeoutMillis) else None
    FunctionCall(DataTypeUtils.toAttributes(function.schema), function.name) { output =>
      readWithinLimit(subject(arguments), limit) {
        function.jobRows(session, call) match {
          case Some(run) => JobFunctionCall(output, function.name, call)(new StatementMemo(session, run))
          case None => LocalRelation(output, function.rows(session, call))
        }
      }
    }
  }

  /** What a call is about, as it was written: its first argument. */
  private def subject(arguments: Seq[Expression]): String =
    arguments.headOption.map { case NamedArgumentExpression(_, value) => value; case value => value } match {
      case Some(Literal(text: UTF8String, _)) => text.toString
      case other => other.fold("the table")(_.sql)
    }

  /** Reads within `spark.metastore.read.timeout`, and says in one line why the statistics of `asked` cannot be read. */
  private[sql] def readWithinLimit[T](session: SparkSession, asked: => String)(read: => T): T =
    readWithinLimit(asked, Some(MetastoreConf.of(session).readTimeoutMillis))(read)

  private def readWithinLimit[T](asked: => String, limitMillis: Option[Long])(read: => T): T =
    try ReadThread.run(limitMillis)(read) catch {
      case _: TimeoutException => throw MetastoreException.timedOut(asked, limitMillis.getOrElse(0L))
      case e: StatisticsException => throw MetastoreException.statisticsUnusable(asked, e)
      case e: IOException => throw MetastoreException.storeUnreadable(asked, e)
      case e: UnsupportedRelease => throw MetastoreException.unsupportedTable(asked, s"it ${e.reason.sentence}")
    }

  private def info(function: TableFunction): ExpressionInfo = {
    val usage = s"metastore.${function.name}(${function.arguments.map(_.name).mkString(", ")}) - ${function.meaning}"
    new ExpressionInfo(function.getClass.getName, "", s"metastore_${function.name}", usage, "", "", "", "table_funcs", "0.1.0", "", "built-in")
  }
}
