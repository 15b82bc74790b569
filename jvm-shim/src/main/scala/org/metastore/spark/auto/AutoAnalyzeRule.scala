package org.metastore.spark.auto

import java.util.Locale

import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, UnaryExecNode}

import org.metastore.spark.conf.MetastoreConf

/** Has the tables that a statement writes analyzed once it is through, where the session or the table asks for it. */
final class AutoAnalyzeRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      try modeOf(plan).fold(plan) { case (table, mode) => AnalyzeAfterWriteExec(plan, table, mode == waiting) }
      catch { case NonFatal(_) => plan }
  }

  private val (off, background, waiting) = ("off", "background", "wait")
  private val Property = "metastore.analyze.auto"

  private def modeOf(plan: SparkPlan): Option[(String, String)] = {
    val conf = MetastoreConf.of(session)
    for {
      table <- if (conf.enabled) WrittenTable.of(plan) else None
      if conf.analyzeFormats.contains(table.format)
      mode <- Some(modeOf(conf.analyzeAuto, table.properties.get(Property))) if mode != off
    } yield (table.name, mode)
  }

  /** A table may ask for it, or have none of it. */
  private def modeOf(ofSession: String, ofTable: Option[String]): String = ofTable.map(_.trim.toLowerCase(Locale.ROOT)) match {
    case Some("false") => off
    case Some("true") if ofSession == off => background
    case _ => ofSession
  }
}

/** Runs a command, and after it ANALYZE of the table that it wrote: before its rows are there, or in the background. */
private[auto] final case class AnalyzeAfterWriteExec(child: SparkPlan, table: String, waits: Boolean) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def nodeName: String = if (waits) "AnalyzeAfterWrite" else "AnalyzeInBackground"
  override def simpleString(maxFields: Int): String = s"$nodeName $table"

  private lazy val analyzed: Unit =
    if (waits) AutoAnalyze.await(session, table) else AutoAnalyze.begin(session, table)

  private def after[T](result: T): T = {
    analyzed
    result
  }

  override def executeCollect(): Array[InternalRow] = after(child.executeCollect())
  override def executeTake(n: Int): Array[InternalRow] = after(child.executeTake(n))
  override def executeToIterator(): Iterator[InternalRow] = after(child.executeToIterator())
  override protected def doExecute(): RDD[InternalRow] = after(child.execute())
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
