package org.metastore.spark.sql

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LeafExecNode, SQLExecution, SparkPlan, SparkStrategy}

/**
 * The call of a table function that starts jobs: it is answered when the statement is executed, in its thread and job group.
 *
 * @param call tells one call from another
 */
final case class JobFunctionCall(output: Seq[Attribute], function: String, call: Arguments)(val run: () => Seq[InternalRow])
  extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(run)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** Rows of a call that a statement makes once, however often it names them: a common table expression stands in it as often. */
private[sql] final class StatementMemo(session: SparkSession, rows: () => Seq[InternalRow]) extends (() => Seq[InternalRow]) {
  private var last: Option[(String, Seq[InternalRow])] = None

  override def apply(): Seq[InternalRow] =
    session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) match {
      case null => rows() // scalastyle:ignore
      case statement => synchronized {
        last.filter(_._1 == statement).getOrElse {
          last = Some(statement -> rows())
          last.get
        }._2
      }
    }
}

/** The same in a physical plan. */
final case class JobFunctionCallExec(
    output: Seq[Attribute], function: String, @transient call: Arguments)(@transient run: () => Seq[InternalRow]) extends LeafExecNode {

  @transient private lazy val rows: Array[InternalRow] = {
    val unsafe = UnsafeProjection.create(output, output)
    run().map(unsafe(_).copy(): InternalRow).toArray
  }

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override protected def doExecute(): RDD[InternalRow] = sparkContext.parallelize(rows.toSeq, 1)
  override def executeCollect(): Array[InternalRow] = rows
}

/** Plans deferred calls. */
object JobFunctionStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case answer: JobFunctionCall => Seq(JobFunctionCallExec(answer.output, answer.function, answer.call)(answer.run))
    case _ => Nil
  }
}
