package org.metastore.spark.scan

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{ExprId, PlanExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{
  FileSourceScanExec, LeafExecNode, LocalTableScanExec, ReusedSubqueryExec, SparkPlan,
  SubqueryAdaptiveBroadcastExec, SubqueryBroadcastExec
}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

import org.metastore.spark.pruning.{ScanDecision, ScanEstimate}
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Finds the decisions behind a physical plan: they live in its scans and nowhere else. */
object ScanDecisions {

  /**
   * One decision a scan that is read, in the order of the plan, sub-queries after the scans of the node that holds them. What a plan
   * uses again is read once.
   */
  def fromPlan(plan: SparkPlan): Seq[ScanDecision] = plan match {
    case _: ReusedExchangeExec => Nil
    case other =>
      val own = ownDecision(other).getOrElse(inputs(other).flatMap(fromPlan))
      own ++ subqueries(other).flatMap(subquery => fromPlan(subquery.plan))
  }

  /** As `of`, with one decision for each scan of the query: those whose rows a plan takes from another one, too. */
  def fromQuery(plan: SparkPlan): Seq[ScanDecision] = ofQuery(plan, mutable.Set.empty)

  // A scan repeats sub-queries of the filter above it.
  private def ofQuery(plan: SparkPlan, seen: mutable.Set[ExprId]): Seq[ScanDecision] = plan match {
    case reused: ReusedExchangeExec => ofQuery(reused.child, seen)
    case reused: ReusedSubqueryExec => ofQuery(reused.child, seen)
    case other =>
      val own = ownDecision(other).getOrElse(inputs(other).flatMap(ofQuery(_, seen)))
      val others = subqueries(other).filter(subquery => seen.add(subquery.id))
      own ++ others.flatMap(subquery => ofQuery(subquery.plan, seen))
  }

  /** What was decided of a leaf; none of other nodes, whose inputs are to be looked at. */
  private def ownDecision(plan: SparkPlan): Option[Seq[ScanDecision]] = plan match {
    // What an aggregate's answer leaves to be read is told with the answer.
    case scan: BatchScanExec => Some(PrunedScan.find(scan.scan).map(_.decision).filterNot(_.isAnswered).toSeq)
    case rows: LocalTableScanExec => Some(decisionOfRows(rows).toSeq)
    case answered: AnsweredRowsExec => Some(Seq(answered.decision))
    case scan: FileSourceScanExec => Some(fileScan(scan).toSeq)
    case comet: LeafExecNode if comet.getClass.getName.startsWith(CometPackage) =>
      replacedScan(comet).map(fileScan(_).toSeq)
    case _ => None
  }

  private val CometPackage = "org.apache.spark.sql.comet."

  /** Spark's scan, which Comet's keeps. */
  private def replacedScan(leaf: LeafExecNode): Option[FileSourceScanExec] =
    leaf.productIterator.collectFirst { case scan: FileSourceScanExec => scan }

  private def inputs(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
    case stage: QueryStageExec => Seq(stage.plan)
    case node => node.children
  }

  /** What the optimizer was told of a scan in a logical plan. */
  def estimateOf(leaf: LogicalPlan): Option[ScanEstimate] = leaf match {
    case relation: DataSourceV2ScanRelation =>
      PrunedScan.decisionOf(relation).flatMap(_.rowEstimate)
    case other => other.getTagValue(Decision).flatMap(_.rowEstimate)
  }

  private[scan] val Decision = TreeNodeTag[ScanDecision]("metastore.decision")

  // What a filter by a join's keys shows below it is the side of the join itself, which is read once.
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

  /** A sub-query; where an expression is repeated in a plan it has the same id. */
  final private case class PlannedSubquery(id: ExprId, plan: SparkPlan)

  /** Of a scan that the table format has answered, Spark's plan keeps the rows alone. */
  private def decisionOfRows(rows: LocalTableScanExec): Option[ScanDecision] =
    for {
      plan <- rows.logicalLink
      relation <- plan.collectFirst { case relation: DataSourceV2ScanRelation => relation }
      decision <- PrunedScan.decisionOf(relation)
    } yield decision

  /** What the optimizer was told of the one relation behind a scan: Delta's physical scan knows no row counts. */
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
      case _ => ScanMark.find(scan.relation).map { mark =>
          val table = PhysicalScanRule.tableOf(scan)
          ScanDecision.withoutPruning(
            table,
            mark match {
              case ScanMark.Refusal(code, _) => Reason(code)
              case _: ScanMark.Permit =>
                Reason(ReasonCode.UnsupportedTable, "relation" -> table, "detail" -> "physical scan")
            })
        }
    }
}
