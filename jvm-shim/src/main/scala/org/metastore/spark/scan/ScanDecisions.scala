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
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

import org.metastore.spark.pruning.{ScanDecision, ScanEstimate, WantedRows}
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Finds the decisions behind a physical plan: they live in its scans and nowhere else. */
object ScanDecisions {

  /**
   * One decision a scan that is read, in the order of the plan, sub-queries after the scans of the node that holds them. What a plan
   * uses again is read once.
   */
  def of(plan: SparkPlan): Seq[ScanDecision] = plan match {
    case _: ReusedExchangeExec => Nil
    case other =>
      ownDecision(other).getOrElse(inputs(other).flatMap(of)) ++ subqueries(other).map(_.plan).flatMap(of)
  }

  /** As `of`, with one decision for each scan of the query: those whose rows a plan takes from another one, too. */
  def ofQuery(plan: SparkPlan): Seq[ScanDecision] = ofQuery(plan, mutable.Set.empty)

  // A scan repeats sub-queries of the filter above it.
  private def ofQuery(plan: SparkPlan, seen: mutable.Set[ExprId]): Seq[ScanDecision] = plan match {
    case reused: ReusedExchangeExec => ofQuery(reused.child, seen)
    case reused: ReusedSubqueryExec => ofQuery(reused.child, seen)
    case other =>
      val own = ownDecision(other).getOrElse(inputs(other).flatMap(ofQuery(_, seen)))
      own ++ subqueries(other).filter(subquery => seen.add(subquery.id)).flatMap(subquery =>
        ofQuery(subquery.plan, seen))
  }

  /** What was decided of a leaf; none of other nodes, whose inputs are to be looked at. */
  private def ownDecision(plan: SparkPlan): Option[Seq[ScanDecision]] = plan match {
    // What an aggregate's answer leaves to be read is told with the answer.
    case scan: BatchScanExec => Some(IcebergScanProxy.decisionOf(scan.scan).filterNot(_.isAnswered).toSeq)
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
      IcebergScanProxy.decisionOf(relation.scan).flatMap(_.rowEstimate)
    case other => other.getTagValue(Decision).flatMap(_.rowEstimate)
  }

  private[scan] val Decision = TreeNodeTag[ScanDecision]("metastore.decision")

  // What a filter by a join's keys shows below it is the side of the join itself, which is read once.
  private def subqueries(node: SparkPlan): Seq[PlannedSubquery] = node.expressions.flatMap(_.collect {
    case e: PlanExpression[_] => e.exprId -> e.plan
  }).collect {
    case (id, plan: SparkPlan)
        if !plan.isInstanceOf[SubqueryBroadcastExec] && !plan.isInstanceOf[SubqueryAdaptiveBroadcastExec] =>
      PlannedSubquery(id, plan)
  }

  /** A sub-query; where an expression is repeated in a plan it has the same id. */
  final private case class PlannedSubquery(id: ExprId, plan: SparkPlan)

  /** Of a scan that the table format has answered, Spark's plan keeps the rows alone. */
  private def decisionOfRows(rows: LocalTableScanExec): Option[ScanDecision] =
    rows.logicalLink.flatMap(_.collectFirst {
      case relation: DataSourceV2ScanRelation => IcebergScanProxy.decisionOf(relation.scan)
    }.flatten)

  /** What the optimizer was told of the one relation behind a scan: Delta's physical scan knows no row counts. */
  private def estimateOfRelation(scan: SparkPlan): Option[ScanEstimate] =
    scan.logicalLink.map(_.collectLeaves()).collect { case Seq(leaf) => leaf }.flatMap(estimateOf)

  private def fileScan(scan: FileSourceScanExec): Option[ScanDecision] =
    IndexStandIn.behind(scan.relation.location) match {
      case index: PruningFileIndex =>
        val decision = index.decision(scan)
        Some(estimateOfRelation(scan).fold(decision)(decision.withEstimate))
      case _ => ScanMark.of(scan.relation).map { mark =>
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

/** The decision on a file relation, as an option of the relation: it survives every later rewrite and every thread. */
private[scan] sealed trait ScanMark {

  /** The option; equal decisions are equal texts, so that equal scans stay equal. */
  def asOption: (String, String)
}

private[scan] object ScanMark {
  private val Key = "metastore.scan"

  /**
   * Files of the table at `root` may be dropped by the statistics of this fingerprint; Spark narrows the paths it reads.
   *
   * @param wanted the rows that are enough; None: all
   */
  final case class Permit(fingerprint: String, root: String, wanted: Option[WantedRows]) extends ScanMark {
    override def asOption: (String, String) = Key -> s"ok:$fingerprint:${wanted.fold("")(_.text)}:$root"
  }

  /** The scan is left alone. */
  final case class Refusal(code: ReasonCode, why: String) extends ScanMark {
    override def asOption: (String, String) = Key -> s"no:${code.name}:$why"
  }

  def refuse(reason: Reason): ScanMark = Refusal(reason.code, reason.sentence)

  /** The mark of a relation. */
  def of(relation: HadoopFsRelation): Option[ScanMark] =
    relation.options.get(Key).map(text => text -> text.split(":", 4)).map {
      case (_, Array("ok", fingerprint, wanted, root)) =>
        Permit(fingerprint, root, if (wanted.isEmpty) None else Some(WantedRows.parse(wanted)))
      case (text, Array("no", code, _*)) =>
        Refusal(
          ReasonCode.all.find(_.name == code).getOrElse(ReasonCode.Failed),
          text.split(":", 3).drop(2).mkString)
      case (text, _) => Refusal(ReasonCode.Failed, text)
    }
}
