package org.metastore.spark.auto

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{Command, CommandResult, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, UnaryExecNode}

import org.metastore.spark.reason.Attempt

/** Analyzes the table that a statement has written, if a setting or the table's property says so. */
final class AutoAnalyzeRule(session: SparkSession) extends ColumnarRule {
  private def request(plan: SparkPlan): Option[AnalyzeRequest] = {
    StreamedWrites.follow(session)
    AnalyzeRequest.fromWrite(session, WrittenTable.fromPlan(plan))
  }

  override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = {
      val written = Attempt.orNone(request(plan)).flatten
      written.fold(plan)(request => AnalyzeAfterWriteExec(plan, request.table, request.waits))
    }
  }
}

/**
 * Analyzes tables that stored procedures of Spark 4 wrote. Spark runs a procedure while it analyzes the
 * statement.
 */
final class AutoAnalyzeCallRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case CommandResult(_, call, _, _) if isNew(call) => follow(call)
      case _ => ()
    }
    plan
  }

  // Queries that contain the result of a call analyze it again.
  private val followed = TreeNodeTag[Boolean]("metastore.followed")

  private def isNew(call: LogicalPlan): Boolean =
    !call.isInstanceOf[Command] && call.getTagValue(followed).isEmpty

  private def follow(call: LogicalPlan): Unit = Attempt.orNone {
    call.setTagValue(followed, true)
    val written = AnalyzeRequest.fromWrite(session, WrittenTable.fromCall(call))
    written.foreach(request => AutoAnalyze.follow(session, request.table, request.waits))
  }
}

/**
 * Runs a command and then ANALYZE of the table that it wrote: before it returns its rows, or in the
 * background.
 */
private[auto] final case class AnalyzeAfterWriteExec(child: SparkPlan, table: String, waits: Boolean)
  extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def nodeName: String = if (waits) "AnalyzeAfterWrite" else "AnalyzeInBackground"
  override def simpleString(maxFields: Int): String = s"$nodeName $table"

  private lazy val analyzed: Unit = {
    Attempt.orNone(CommittedTable.refreshCached(child))
    AutoAnalyze.follow(session, table, waits)
  }

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
