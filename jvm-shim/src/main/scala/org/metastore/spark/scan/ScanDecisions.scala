package org.metastore.spark.scan

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{ExprId, PlanExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{
  FileSourceScanExec, LeafExecNode, LocalTableScanExec, ReusedSubqueryExec, SparkPlan,
  SubqueryAdaptiveBroadcastExec, SubqueryBroadcastExec
}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

import org.metastore.spark.pruning.{ScanDecision, ScanEstimate}
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Finds the decisions behind a physical plan: only its scans have them. */
object ScanDecisions {

  /**
   * One decision for each scan that is read, in the order of the plan. The scans of a node come before those
   * of its sub-queries. A part of the plan that is reused is read once.
   */
  def fromPlan(plan: SparkPlan): Seq[ScanDecision] = plan match {
    case _: ReusedExchangeExec => Nil
    case other =>
      val scans = ownDecision(other) ++ inputs(other).flatMap(fromPlan)
      scans.toSeq ++ subqueries(other).flatMap(subquery => fromPlan(subquery.plan))
  }

  /** One decision for each scan of the query, also for reused parts of the plan; else like `fromPlan`. */
  def fromQuery(plan: SparkPlan): Seq[ScanDecision] = fromQuery(plan, mutable.Set.empty)

  // A scan and the filter above it have the same sub-queries.
  private def fromQuery(plan: SparkPlan, seen: mutable.Set[ExprId]): Seq[ScanDecision] = plan match {
    case reused: ReusedExchangeExec => fromQuery(reused.child, seen)
    case reused: ReusedSubqueryExec => fromQuery(reused.child, seen)
    case other =>
      val scans = ownDecision(other) ++ inputs(other).flatMap(fromQuery(_, seen))
      val unseen = subqueries(other).filter(subquery => seen.add(subquery.id))
      scans.toSeq ++ unseen.flatMap(subquery => fromQuery(subquery.plan, seen))
  }

  /** The decision on a scan, or None for other nodes. */
  private def ownDecision(plan: SparkPlan): Option[ScanDecision] = plan match {
    // The decision of an aggregate's answer also covers the files that are read for the rest.
    case scan: BatchScanExec => PrunedScan.fromScan(scan.scan).map(_.decision).filterNot(_.isAnswered)
    case rows: LocalTableScanExec => decisionOfRows(rows)
    case answered: AnsweredRowsExec => Some(answered.decision)
    case scan: FileSourceScanExec => fileScan(scan)
    case comet: LeafExecNode if comet.getClass.getName.startsWith(CometPackage) =>
      replacedScan(comet).flatMap(fileScan)
    case _ => None
  }

  private val CometPackage = "org.apache.spark.sql.comet."

  /** Spark's scan inside Comet's. */
  private def replacedScan(leaf: LeafExecNode): Option[FileSourceScanExec] =
    leaf.productIterator.collectFirst { case scan: FileSourceScanExec => scan }

  private def inputs(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
    case stage: QueryStageExec => Seq(stage.plan)
    case node => node.children
  }

  /** The optimizer's estimate for a scan in a logical plan. */
  def estimateOf(leaf: LogicalPlan): Option[ScanEstimate] = PrunedScan.decision(leaf).flatMap(_.rowEstimate)

  // A filter by a join's keys contains the join's other side, which is read once.
  private def subqueries(node: SparkPlan): Seq[PlannedSubquery] =
    for {
      root <- node.expressions
      expression <- root.collect { case holder: PlanExpression[_] => holder }
      subquery <- planned(expression)
    } yield subquery

  private def planned(expression: PlanExpression[_]): Option[PlannedSubquery] = expression.plan match {
    case _: SubqueryBroadcastExec | _: SubqueryAdaptiveBroadcastExec => None
    case plan: SparkPlan => Some(PlannedSubquery(expression.exprId, plan))
    case _ => None
  }

  /** A sub-query; a repeated expression has the same id. */
  final private case class PlannedSubquery(id: ExprId, plan: SparkPlan)

  /** The decision on a scan that the table format has answered: Spark's plan keeps only the rows. */
  private def decisionOfRows(rows: LocalTableScanExec): Option[ScanDecision] =
    for {
      plan <- rows.logicalLink
      relation <- plan.collectFirst { case relation: DataSourceV2ScanRelation => relation }
      decision <- PrunedScan.decision(relation)
    } yield decision

  /** The estimate of the one relation behind a scan: Delta's physical scan has no row counts. */
  private def estimateOfRelation(scan: SparkPlan): Option[ScanEstimate] =
    for {
      plan <- scan.logicalLink
      Seq(leaf) <- Some(plan.collectLeaves())
      estimate <- estimateOf(leaf)
    } yield estimate

  private def fileScan(scan: FileSourceScanExec): Option[ScanDecision] =
    IndexStandIn.behind(scan.relation.location) match {
      case index: PruningFileIndex =>
        val decision = index.decision(scan)
        Some(estimateOfRelation(scan).fold(decision)(decision.withEstimate))
      case _ =>
        val table = PhysicalScanRule.tableOf(scan)
        for (mark <- ScanMark.fromRelation(scan.relation))
          yield ScanDecision.withoutPruning(table, unprunedReason(mark, table))
    }

  /** The reason why no file of a marked scan was dropped. */
  private def unprunedReason(mark: ScanMark, table: String): Reason = mark match {
    case ScanMark.Refusal(code, _) => Reason(code)
    case _: ScanMark.Permit =>
      Reason(ReasonCode.UnsupportedTable, "relation" -> table, "detail" -> "physical scan")
  }
}
