package org.metastore.spark

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

import org.metastore.spark.analyze.{AnalyzableColumnsRule, AnalyzeRule}
import org.metastore.spark.auto.{AutoAnalyzeCallRule, AutoAnalyzeRule}
import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{CboSwitch, StageStatisticsRule}
import org.metastore.spark.explain.PruningHistoryRule
import org.metastore.spark.scan.{
  AnsweredRowsStrategy, LogicalScanRule, ParquetScanStrategy, PhysicalScanColumnarRule, PhysicalScanRule,
  PlanningStartRule, WarmUp
}
import org.metastore.spark.sql.{
  ColumnsViewRule, DataSourceErrorRule, DataSourceRule, EarlyRules, FunctionCallRule, JobFunctionStrategy,
  MetastoreParser, OutermostParser, TableFunctions
}

/**
 * Everything that the shim adds to a session of one line of Spark, in the order in which a query meets it.
 *
 * `MetastoreExtensions` registers itself and may be listed in `spark.sql.extensions` too, so `apply` can run
 * twice for one session: each line must be harmless when repeated.
 */
class SessionExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    TableFunctions.register()
    val isAnalyzerRule = EarlyRules.inject(extensions, new AnalyzableColumnsRule(_))
    addParser(extensions, runsColumnsRule = !isAnalyzerRule)
    addAnalyzerRules(extensions)
    addOptimizerRules(extensions)
    addPlannerStrategies(extensions)
    addPhysicalRules(extensions)
    MetastoreConf.warnOfMisspeltVariables()
    // Before the session's first query: the session copies the context's conf, which this changes.
    CboSwitch()
    // Beside everything else, on a thread of its own.
    WarmUp.begin()
  }

  /**
   * Adds our parser. It is the outermost: parsers of other extensions lose parameter markers.
   *
   * @param runsColumnsRule whether it runs AnalyzableColumnsRule: some Sparks have no place for an early rule
   */
  private def addParser(extensions: SparkSessionExtensions, runsColumnsRule: Boolean): Unit = {
    if (runsColumnsRule)
      extensions.injectParser((session, delegate) =>
        MetastoreParser(delegate, new AnalyzableColumnsRule(session).apply))
    else extensions.injectParser((_, delegate) => MetastoreParser(delegate))
    // Spark applies registered extensions first and listed ones afterwards: the last one listed is outermost.
    OutermostParser.list()
  }

  private def addAnalyzerRules(extensions: SparkSessionExtensions): Unit = {
    // Before names are resolved: Spark's own error for a data source would come first. For the same reason
    // AnalyzableColumnsRule runs here, which `apply` injects; the two rules change different plans.
    EarlyRules.inject(extensions, new DataSourceErrorRule(_))
    // While names are resolved: Spark refuses ANALYZE of a V2 table once its name is resolved.
    extensions.injectResolutionRule(new AnalyzeRule(_))
    // After names are resolved: the arguments of a function are folded, the relation of a data source is
    // there, and a stored procedure has run. In any order: each rule handles nodes that the others pass over.
    extensions.injectPostHocResolutionRule(_ => FunctionCallRule)
    extensions.injectPostHocResolutionRule(new DataSourceRule(_))
    extensions.injectPostHocResolutionRule(new AutoAnalyzeCallRule(_))
  }

  private def addOptimizerRules(extensions: SparkSessionExtensions): Unit = {
    // Once for each query, before the optimizer: the time limit of planning begins.
    extensions.injectPlanNormalizationRule(new PlanningStartRule(_))
    // With the rules that push filters down: filters have to reach the view.
    extensions.injectOptimizerRule(_ => ColumnsViewRule)
    // After filters and columns are pushed down, before joins are reordered: the optimizer needs the numbers
    // of the files that remain. PruningHistoryRule changes no plan: it begins to listen to the session's
    // queries.
    extensions.injectPreCBORule(new LogicalScanRule(_))
    extensions.injectPreCBORule(new PruningHistoryRule(_))
    // Last of all, on joins in their final order: JoinPruningRule. PlanningStartRule adds it to the session's
    // `experimental.extraOptimizations`, for which an extension has no method.
  }

  /** Adds strategies, in any order: each plans nodes that the others pass over. */
  private def addPlannerStrategies(extensions: SparkSessionExtensions): Unit = {
    // Spark has no strategy for these nodes, which are ours.
    extensions.injectPlannerStrategy(_ => JobFunctionStrategy)
    extensions.injectPlannerStrategy(_ => AnsweredRowsStrategy)
    // Before Spark's own strategies, as Spark orders them: Comet replaces a scan that Spark plans, in rules
    // that run before ours.
    extensions.injectPlannerStrategy(new ParquetScanStrategy(_))
  }

  private def addPhysicalRules(extensions: SparkSessionExtensions): Unit = {
    // When adaptive execution prepares its first plan, so that EXPLAIN shows the files that remain.
    extensions.injectQueryStagePrepRule(new PhysicalScanRule(_))
    // The same rule for plans without adaptive execution.
    extensions.injectColumnar(new PhysicalScanColumnarRule(_))
    // The plan of a write is final here. Before or after the scans: this rule changes the root of a plan
    // alone.
    extensions.injectColumnar(new AutoAnalyzeRule(_))
    // When adaptive execution plans again after a stage.
    extensions.injectRuntimeOptimizerRule(_ => StageStatisticsRule)
  }
}
