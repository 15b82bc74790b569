package org.metastore.spark

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

import org.metastore.spark.analyze.{
  AnalyzableColumnsRule, AnalyzeRule, AttachedPython, DiffStatement, FilteredSummaryStatement
}
import org.metastore.spark.auto.{AutoAnalyzeCallRule, AutoAnalyzeRule}
import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{CboSwitch, StageStatisticsRule}
import org.metastore.spark.explain.PruningHistoryRule
import org.metastore.spark.scan.{
  AnsweredRowsStrategy, LogicalScanRule, ParquetScanStrategy, PlanningStartRule, WarmUp
}
import org.metastore.spark.scan.{PhysicalScanColumnarRule, PhysicalScanRule}
import org.metastore.spark.sql.{
  ColumnsViewRule, DataSourceErrorRule, DataSourceRule, DiffFunction, EarlyRules, FilteredSummaryFunction,
  FunctionCallRule,
  JobFunctionStrategy, MetastoreParser, OutermostParser, TableFunctions
}

/**
 * Everything that the shim adds to a session of one line of Spark, one line each.
 *
 * `MetastoreExtensions` registers itself and may be listed in `spark.sql.extensions` too, so `apply` can run twice for one
 * session: each line must be harmless when repeated.
 */
class SessionExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    TableFunctions.register()
    FilteredSummaryFunction.answerBy((session, table, query) =>
      AttachedPython.run(session, FilteredSummaryStatement(table, query)))
    DiffFunction.answerBy { (session, question) =>
      val statement = DiffStatement(question)
      AttachedPython.run(session, statement)
    }
    if (EarlyRules.inject(extensions, new AnalyzableColumnsRule(_)))
      extensions.injectParser((_, delegate) => MetastoreParser(delegate))
    else
      extensions.injectParser((session, delegate) =>
        MetastoreParser(delegate, new AnalyzableColumnsRule(session).apply))
    OutermostParser.list()
    EarlyRules.inject(extensions, new DataSourceErrorRule(_))
    extensions.injectResolutionRule(new AnalyzeRule(_))
    extensions.injectPostHocResolutionRule(_ => FunctionCallRule)
    extensions.injectPostHocResolutionRule(new DataSourceRule(_))
    extensions.injectPostHocResolutionRule(new AutoAnalyzeCallRule(_))
    extensions.injectOptimizerRule(_ => ColumnsViewRule)
    extensions.injectPlanNormalizationRule(new PlanningStartRule(_))
    extensions.injectPreCBORule(new LogicalScanRule(_))
    extensions.injectPreCBORule(new PruningHistoryRule(_))
    extensions.injectPlannerStrategy(_ => JobFunctionStrategy)
    extensions.injectPlannerStrategy(_ => AnsweredRowsStrategy)
    extensions.injectPlannerStrategy(new ParquetScanStrategy(_))
    extensions.injectRuntimeOptimizerRule(_ => StageStatisticsRule)
    extensions.injectQueryStagePrepRule(new PhysicalScanRule(_))
    extensions.injectColumnar(new PhysicalScanColumnarRule(_))
    extensions.injectColumnar(new AutoAnalyzeRule(_))
    MetastoreConf.warnOfMisspeltVariables()
    CboSwitch()
    WarmUp.begin()
  }
}
