package org.metastore.spark.tables

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkOptimizer, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Applies the rules of a session that may be somebody's policy, wherever `SparkSessionExtensions` put them.
 */
private[spark] final class ExtensionRules(session: SparkSession) {
  private val state = session.sessionState
  private val optimizer = state.optimizer.asInstanceOf[SparkOptimizer]

  /** The optimized plan, and the plan before filters were pushed into scans, which hide them. */
  def optimizeWith(plan: LogicalPlan): Seq[LogicalPlan] =
    run(plan, new RecordingOptimizer(withPolicies = true))

  /** The same plans by Spark's rules alone. */
  def optimizeWithout(plan: LogicalPlan): Seq[LogicalPlan] =
    run(plan, new RecordingOptimizer(withPolicies = false))

  /** Whether no strategy makes a physical plan of its own for any part of an optimized plan. */
  def leavePlanning(optimized: LogicalPlan): Boolean = {
    val strategies =
      selectRules(state.experimentalMethods.extraStrategies ++ state.planner.extraPlanningStrategies)
    def isPlanned(node: LogicalPlan) = strategies.exists(strategy => strategy(node).nonEmpty)
    !isPlanned(ReturnAnswer(optimized)) && !optimized.exists(isPlanned(_))
  }

  /** Whether no rule for physical plans changes one. */
  def leavePhysical(physical: => SparkPlan): Boolean = {
    val adaptive = state.adaptiveRulesHolder
    val columnar = selectRules(state.columnarRules).flatMap(rule =>
      Seq(rule.preColumnarTransitions, rule.postColumnarTransitions))
    val rules: Seq[Rule[SparkPlan]] = columnar ++ selectRules(
      adaptive.queryPostPlannerStrategyRules ++ adaptive.queryStagePrepRules ++ adaptive.queryStageOptimizerRules)
    lazy val plan = physical
    rules.forall(rule => rule(plan).fastEquals(plan))
  }

  private def run(plan: LogicalPlan, recording: RecordingOptimizer): Seq[LogicalPlan] =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(withoutNestedPruning {
      recording.execute(applyAll(recording.normalizations, plan)) +: recording.beforePushDown.toSeq
    })

  /** Switches the pruning of nested fields off: it takes seconds for thousands of columns. */
  private def withoutNestedPruning[T](optimize: => T): T = {
    val conf = SQLConf.get.clone()
    conf.setConf(SQLConf.NESTED_SCHEMA_PRUNING_ENABLED, false)
    SQLConf.withExistingConf(conf)(optimize)
  }

  /**
   * Applies policies to a plan before Spark's own rules, which may remove the nodes that a policy looks for.
   */
  def rewrite(plan: LogicalPlan): LogicalPlan = AnalysisHelper.allowInvokingTransformsInAnalyzer {
    val registered = optimizer.extendedOperatorOptimizationRules ++ optimizer.preCBORules
    val rules = registered ++ state.experimentalMethods.extraOptimizations
    applyAll(selectRules(rules), plan)
  }

  private def applyAll(rules: Seq[Rule[LogicalPlan]], plan: LogicalPlan) =
    rules.foldLeft(plan)((result, rule) => rule(result))

  /** The rules that may be policies. */
  private def selectRules[T](rules: scala.collection.Seq[T]): List[T] =
    rules.filterNot(rule => noPolicies.exists(rule.getClass.getName.startsWith)).toList

  private val noPolicies = TableFormats.all.flatMap(_.rules) ++
    Seq("org.metastore.", "org.apache.comet.", "org.apache.gluten.", "com.nvidia.spark.rapids.")

  // The first rule adds a projection, which is no policy's. For the second, a table format may list all data
  // files.
  private val skippedRules = Set("PushVariantIntoScan$", "V2ScanPartitioningAndOrdering$")

  private final class RecordingOptimizer(withPolicies: Boolean)
    extends SparkOptimizer(state.catalogManager, state.catalog, state.experimentalMethods) {
    @volatile private var recorded: Option[LogicalPlan] = None

    def beforePushDown: Option[LogicalPlan] = recorded

    private object Record extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = {
        recorded = Some(plan)
        plan
      }
    }

    def normalizations: Seq[Rule[LogicalPlan]] = injected(state.planNormalizationRules)
    override def extendedOperatorOptimizationRules: Seq[Rule[LogicalPlan]] =
      injected(optimizer.extendedOperatorOptimizationRules)
    override def preCBORules: Seq[Rule[LogicalPlan]] = injected(optimizer.preCBORules)
    override def earlyScanPushDownRules: Seq[Rule[LogicalPlan]] =
      Record +: optimizer.earlyScanPushDownRules.filterNot(rule =>
        skippedRules(rule.getClass.getSimpleName)).toList
    override def defaultBatches: Seq[Batch] =
      super.defaultBatches.filter(withPolicies || _.name != "User Provided Optimizers")

    private def injected(rules: scala.collection.Seq[Rule[LogicalPlan]]) =
      if (withPolicies) selectRules(rules) else Nil
  }
}
