package org.metastore.spark.sql

import java.io.IOException
import java.util.Locale
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{MetastoreException, Optional, StatisticsException}
import org.metastore.spark.tables.UnsupportedRelease

/** All table functions, and their registration in Spark. */
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
    new HelpFunction(listed),
    VersionFunction,
    FactsFunction,
    FilterFunction,
    FormatsFunction)

  /** The functions that people call, in the order of `metastore.help()`. */
  lazy val listed: Seq[TableFunction] = all.filterNot(_.isInternal)

  lazy val names: Seq[String] = listed.map(_.name)

  /** The function of a name in the contract. */
  def named(name: String): TableFunction = all.find(_.name == name).get

  /**
   * Makes the functions built-ins of Spark: persistent views refuse injected ones, which count as temporary.
   * The registry is the JVM's, so this is done once however many sessions there are.
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
    val limit = Optional.when(function.isLimited)(MetastoreConf.fromSession(session).readTimeoutMillis)
    val answer = Answer.InAnalysis { output =>
      readWithinLimit(subject(arguments), limit) {
        function.jobRows(session, call) match {
          case Some(run) =>
            FunctionCall(output, function.name, call, Answer.InExecution(new StatementMemo(session, run)))
          case None => LocalRelation(output, function.rows(session, call))
        }
      }
    }
    FunctionCall(DataTypeUtils.toAttributes(function.schema), function.name, call, answer)
  }

  /** The function that SQL calls by a name in one part. */
  private[sql] def called(name: Seq[String]): Option[TableFunction] =
    listed.find(function => name.map(_.toLowerCase(Locale.ROOT)) == Seq(s"metastore_${function.name}"))

  /** The first argument of a call as it was written, for error messages. */
  private def subject(arguments: Seq[Expression]): String =
    arguments.headOption.map(Arguments.valueOf) match {
      case Some(Literal(text: UTF8String, _)) => text.toString
      case other => other.fold("the table")(_.sql)
    }

  /** Reads within `spark.metastore.read.timeout`, with one-line errors that name the subject. */
  private[sql] def readWithinLimit[T](session: SparkSession, subject: => String)(read: => T): T =
    readWithinLimit(subject, Some(MetastoreConf.fromSession(session).readTimeoutMillis))(read)

  private def readWithinLimit[T](subject: => String, limitMillis: Option[Long])(read: => T): T =
    try ReadThread.run(limitMillis)(read)
    catch {
      case _: TimeoutException => throw MetastoreException.timedOut(subject, limitMillis.getOrElse(0L))
      case e: StatisticsException => throw MetastoreException.statisticsUnusable(subject, e)
      case e: IOException => throw MetastoreException.storeUnreadable(subject, e)
      case e: AnalysisException => throw MetastoreException.withoutPlan(e)
      case e: UnsupportedRelease =>
        throw MetastoreException.unsupportedTable(subject, s"it ${e.reason.sentence}")
      case e @ (_: VirtualMachineError | _: LinkageError) => throw MetastoreException.failed(subject, e)
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
