package org.metastore.spark.sql

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy, SQLExecution}

/**
 * The call of a table function, or a view of the data source, before its rows are read. Spark looks functions
 * up with its catalog locked: a read there would make every other statement of the session wait.
 *
 * @param key distinguishes the calls of one function
 */
final case class FunctionCall(output: Seq[Attribute], function: String, key: Any, answer: Answer)
  extends LeafNode
  with MultiInstanceRelation {

  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  /**
   * The plan with the rows that can be read before the statement is executed, under this plan's attributes.
   */
  def read(keeps: (String, String) => Boolean): LogicalPlan = answer match {
    case Answer.InAnalysis(read) => read(output)
    case Answer.WithFilters(read) => read(keeps).copy(output = output)
    case _: Answer.InExecution => this
  }
}

/**
 * The time and way in which the rows of a call are read. Answers of one kind are equal, because the key
 * distinguishes calls. Answers of two kinds are not equal: Spark drops the result of a rule that equals its
 * input.
 */
sealed abstract class Answer {
  final override def equals(other: Any): Boolean = other.isInstanceOf[Answer] && other.getClass == getClass
  final override def hashCode: Int = getClass.hashCode
}

object Answer {

  /**
   * After all names are resolved, without locks. Still in analysis, so that mistakes are reported at once.
   */
  final case class InAnalysis(read: Seq[Attribute] => LogicalPlan) extends Answer

  /** When the filters of the query are known: they select texts of columns. */
  final case class WithFilters(read: ((String, String) => Boolean) => LocalRelation) extends Answer

  /** When the statement is executed, in its thread and job group, because the call starts jobs. */
  final case class InExecution(run: () => Seq[InternalRow]) extends Answer
}

/**
 * Reads the rows of a call once for a statement, which may contain it twice through a common table
 * expression.
 */
private[sql] final class StatementMemo(session: SparkSession, rows: () => Seq[InternalRow])
  extends (() => Seq[InternalRow]) {
  private var last: Option[(String, Seq[InternalRow])] = None

  private def rowsOf(statement: String): Seq[InternalRow] = synchronized {
    last match {
      case Some((`statement`, remembered)) => remembered
      case _ =>
        val result = rows()
        last = Some((statement, result))
        result
    }
  }

  override def apply(): Seq[InternalRow] =
    session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) match {
      case null => rows()
      case statement => rowsOf(statement)
    }
}

/** A call that is answered in execution, in a physical plan. */
final case class JobFunctionCallExec(
    output: Seq[Attribute],
    function: String,
    @transient key: Any)(@transient run: () => Seq[InternalRow])
  extends LeafExecNode {

  @transient private lazy val rows: Array[InternalRow] = {
    val unsafe = UnsafeProjection.create(output, output)
    run().map(unsafe(_).copy(): InternalRow).toArray
  }

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override protected def doExecute(): RDD[InternalRow] = sparkContext.parallelize(rows.toSeq, 1)
  override def executeCollect(): Array[InternalRow] = rows
}

/** Plans calls that are answered in execution. */
object JobFunctionStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case call: FunctionCall => call.answer match {
        case Answer.InExecution(run) => Seq(JobFunctionCallExec(call.output, call.function, call.key)(run))
        case _ => Nil
      }
    case _ => Nil
  }
}
