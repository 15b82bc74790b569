package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{
  IntegerLiteral, PredicateHelper, SortOrder, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate, Command, Filter, GlobalLimit, LeafNode, LocalLimit, LogicalPlan, Project, Sort, V2WriteCommand
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.command.DataWritingCommand

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{JoinKeys, QueryJoinOrder}
import org.metastore.spark.reason.Attempt

/**
 * Decides which data files each scan reads, and gives the optimizer the numbers of these files. It runs
 * before joins are reordered.
 */
final class LogicalScanRule(session: SparkSession) extends Rule[LogicalPlan] with PredicateHelper {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    val settings = new MetastoreConf(conf)
    if (!settings.pruningEnabled && !settings.cboEnabled) plan
    else ScanPlanner.recover("A query", plan) {
      val scope =
        PlanScope.judge(plan, PlanningContext.current.write, settings)(
          ScanFormats.findsFiles(plan),
          ScanFormats.findsFiles(plan, _))
      scope.fold(plan)(decide(plan, _, settings))
    }
  }

  private def decide(plan: LogicalPlan, scope: PlanScope.Scope, settings: MetastoreConf): LogicalPlan = {
    val prepared = PlanningContext.aside(ScanFormats.prepareRelations(plan, session))
    val planner =
      ScanPlanner.logical(
        session,
        settings,
        scope,
        mayLimit = !isWrite(plan) && !PlanScope.isCorrelated(plan),
        joinsOf(prepared, _))
    if (!planner.leavesAlone) begin(prepared, planner)
    val rewritten = rewrite(prepared, ScanContext(), planner)
    val isReordered = settings.cboEnabled && conf.cboEnabled && conf.joinReorderEnabled
    if (isReordered && !rewritten.fastEquals(prepared)) QueryJoinOrder.keep(rewritten)
    else rewritten
  }

  // Each table's look-up waits for storage: in parallel they take as long as one. A failure is raised again
  // later, by the scan that needs the statistics.
  private def begin(plan: LogicalPlan, planner: ScanPlanner): Unit = {
    val leaves = plan.collectWithSubqueries { case leaf: LeafNode => leaf }
    if (leaves.size > 1)
      for (leaf <- leaves) Attempt.orNone(planner.begin(RelationAdapters.all.iterator.flatMap(_.table(leaf))))
  }

  private def isWrite(plan: LogicalPlan): Boolean =
    PlanScope.write(plan).orElse(PlanningContext.current.write).isDefined

  private def joinsOf(plan: LogicalPlan, planner: ScanPlanner): JoinKeys =
    JoinKeys.fromPlan(plan, leaf => RelationAdapters.first(_.columns(leaf, planner)))

  // Most sub-queries were prepared when they were optimized; Delta chooses their files with the main plan.
  private def rewrite(plan: LogicalPlan, context: ScanContext, planner: ScanPlanner): LogicalPlan = {
    val node = rewriteNode(plan, context, planner)
    node.transformExpressionsWithPruning(_.containsPattern(TreePattern.PLAN_EXPRESSION)) {
      case subquery: SubqueryExpression =>
        val rewritten = rewrite(subquery.plan, ScanContext(), planner)
        if (rewritten.fastEquals(subquery.plan)) subquery
        else subquery.withNewPlan(rewritten)
    }
  }

  private def rewriteNode(plan: LogicalPlan, context: ScanContext, planner: ScanPlanner): LogicalPlan =
    plan match {
      case leaf: LeafNode => prepare(leaf, context, planner)
      case command: Command => rewriteCommand(command, planner)
      case aggregate: Aggregate if planner.answers =>
        answer(aggregate, planner).getOrElse(rewriteChildren(aggregate, context, planner))
      case other => rewriteChildren(other, context, planner)
    }

  private def rewriteChildren(plan: LogicalPlan, context: ScanContext, planner: ScanPlanner): LogicalPlan = {
    val childContext = contextBelow(plan, context, planner)
    plan.mapChildren(rewrite(_, childContext, planner))
  }

  /** The filters, limit and order above the children of an operator. */
  private def contextBelow(plan: LogicalPlan, context: ScanContext, planner: ScanPlanner): ScanContext =
    plan match {
      case Filter(condition, _) =>
        context.copy(conjuncts = context.conjuncts ++ splitConjunctivePredicates(condition))
      // A LocalLimit bounds the rows, whatever operator is above it.
      case LocalLimit(IntegerLiteral(limit), _) if limit > 0 && usesLimits(planner) =>
        ScanContext(limit = Some(limit.toLong))
      // Filters above any other operator do not reach a scan.
      case _ if context.conjuncts.nonEmpty => ScanContext()
      case sort: Sort if sort.global && planner.topRows && context.isLimitAlone =>
        context.copy(order = sort.order.headOption)
      case project: Project => context.copy(order = context.order.map(belowProject(project, _)))
      case _: GlobalLimit if context.order.isEmpty => context
      case _ => ScanContext()
    }

  private def usesLimits(planner: ScanPlanner): Boolean = planner.limits || planner.topRows

  private def belowProject(project: Project, order: SortOrder): SortOrder =
    order.copy(child = replaceAlias(order.child, getAliasMap(project)))

  private def rewriteCommand(command: Command, planner: ScanPlanner): LogicalPlan =
    prepareTarget(command, planner).mapChildren {
      // The target of a command is not a scan, and Spark refreshes cached tables by comparing it.
      case target: LeafNode if !LogicalScanRule.writesChild(command) => target
      case query => rewrite(query, ScanContext(), planner)
    }

  private def answer(aggregate: Aggregate, planner: ScanPlanner): Option[LogicalPlan] =
    ScanPlanner.recover("An aggregate", Option.empty[LogicalPlan]) {
      new AggregateAnswer(planner).replace(aggregate)
    }

  private def prepareTarget(command: Command, planner: ScanPlanner): LogicalPlan = command match {
    case write: V2WriteCommand => orUnchanged(write)(ScanFormats.prepareTarget(write, planner))
    case other => other
  }

  private def prepare(leaf: LogicalPlan, context: ScanContext, planner: ScanPlanner): LogicalPlan = {
    val isUnlimited = context.order.isEmpty && !planner.limits
    val scanContext = if (isUnlimited) context.copy(limit = None) else context
    orUnchanged(leaf) {
      RelationAdapters.first(_.prepare(leaf, scanContext, planner)).getOrElse(leaf)
    }
  }

  private def orUnchanged(plan: LogicalPlan)(changed: => LogicalPlan): LogicalPlan =
    ScanPlanner.recover(plan.nodeName, plan)(changed)
}

private[scan] object LogicalScanRule {

  /** Whether the child of a command is the query whose rows it writes; else it is the target. */
  def writesChild(command: Command): Boolean =
    command.isInstanceOf[V2WriteCommand] || command.isInstanceOf[DataWritingCommand]
}
