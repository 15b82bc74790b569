package org.metastore.spark.scan

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}

import org.metastore.spark.pruning.ScanDecision

/** The rows that replace an aggregate and its scan. The decision lists the files that they answer for. */
final case class AnsweredRows(output: Seq[Attribute], rows: Seq[InternalRow])(val decision: ScanDecision)
  extends LeafNode {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(decision)
  override protected def stringArgs: Iterator[Any] = Iterator(decision.table, decision.label, output)
  override def maxRows: Option[Long] = Some(rows.length)
  override def computeStats(): Statistics = Statistics(
    sizeInBytes = EstimationUtils.getSizePerRow(output) * math.max(1, rows.length),
    rowCount = Some(math.max(1, rows.length)))
}

/** `AnsweredRows` in a physical plan. */
final case class AnsweredRowsExec(
    output: Seq[Attribute],
    rows: Seq[InternalRow])(@transient val decision: ScanDecision)
  extends LeafExecNode {

  @transient private lazy val unsafeRows: Array[InternalRow] = {
    val unsafe = UnsafeProjection.create(output, output)
    rows.map(unsafe(_).copy(): InternalRow).toArray
  }

  override def nodeName: String = "StatisticsAnswer"
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(decision)
  override protected def stringArgs: Iterator[Any] = Iterator(s"${decision.table} ${decision.label}", output)
  override protected def doExecute(): RDD[InternalRow] = sparkContext.parallelize(unsafeRows.toSeq, 1)
  override def executeCollect(): Array[InternalRow] = unsafeRows
}

/** Plans `AnsweredRows`. */
object AnsweredRowsStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case answered: AnsweredRows => Seq(AnsweredRowsExec(answered.output, answered.rows)(answered.decision))
    case _ => Nil
  }
}
