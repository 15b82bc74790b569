package org.metastore.spark.sql

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}

/**
 * The call of a table function that starts jobs: it is answered when the statement is executed, in its thread and job group.
 *
 * @param call tells one call from another
 */
final case class DeferredAnswer(output: Seq[Attribute], function: String, call: Arguments)(val run: () => Seq[InternalRow])
  extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(run)
  override protected def stringArgs: Iterator[Any] = Iterator(output, function)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(run)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** The same in a physical plan. */
final case class DeferredAnswerExec(
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
object DeferredAnswers extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case answer: DeferredAnswer => Seq(DeferredAnswerExec(answer.output, answer.function, answer.call)(answer.run))
    case _ => Nil
  }
}
