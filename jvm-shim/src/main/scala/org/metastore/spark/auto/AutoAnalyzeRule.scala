package org.metastore.spark.auto

import java.util.Locale

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{Command, CommandResult, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, UnaryExecNode}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.Recoverable

/** Has the tables that a statement writes analyzed once it is through, where the session or the table asks for it. */
final class AutoAnalyzeRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      try {
        StreamedWrites.follow(session)
        Asked.of(session, WrittenTable.of(plan)).fold(plan)(asked =>
          AnalyzeAfterWriteExec(plan, asked.table, asked.waits))
      } catch { case Recoverable(_) => plan }
  }
}

/** The same for stored procedures of Spark 4, which has run them where a statement that calls one is analyzed. */
final class AutoAnalyzeCallRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case CommandResult(_, call, _, _)
          if !call.isInstanceOf[Command] && call.getTagValue(followed).isEmpty => follow(call)
      case _ => ()
    }
    plan
  }

  // its result is analyzed again as a part of queries
  private val followed = TreeNodeTag[Boolean]("metastore.followed")

  private def follow(call: LogicalPlan): Unit =
    try {
      call.setTagValue(followed, true)
      Asked.of(session, WrittenTable.ofCall(call)).foreach(asked =>
        AutoAnalyze.follow(session, asked.table, asked.waits))
    } catch { case Recoverable(_) => () }
}

/** A table that is to be analyzed after a write, and whether the statement waits for that. */
private[auto] final case class Asked(table: String, waits: Boolean)

private[auto] object Asked {
  private val (off, background, waiting) = ("off", "background", "wait")
  private val Property = "metastore.analyze.auto"

  /** What the session and the table that is written want. */
  def of(session: SparkSession, written: => Option[WrittenTable]): Option[Asked] = {
    val conf = MetastoreConf.of(session)
    for {
      table <- if (conf.enabled) written else None
      _ = MetastoreConf.warnOfMisspeltProperties(table.name, table.properties)
      if conf.analyzeFormats.contains(table.format)
      mode <- Some(modeOf(conf.analyzeAuto, table.properties.get(Property))) if mode != off
    } yield Asked(table.name, mode == waiting)
  }

  /** A table may ask for it, or have none of it. */
  private def modeOf(ofSession: String, ofTable: Option[String]): String =
    ofTable.map(_.trim.toLowerCase(Locale.ROOT)) match {
      case Some("false") => off
      case Some("true") if ofSession == off => background
      case _ => ofSession
    }
}

/** Runs a command, and after it ANALYZE of the table that it wrote: before its rows are there, or in the background. */
private[auto] final case class AnalyzeAfterWriteExec(child: SparkPlan, table: String, waits: Boolean)
  extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def nodeName: String = if (waits) "AnalyzeAfterWrite" else "AnalyzeInBackground"
  override def simpleString(maxFields: Int): String = s"$nodeName $table"

  private lazy val analyzed: Unit = AutoAnalyze.follow(session, table, waits)

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
