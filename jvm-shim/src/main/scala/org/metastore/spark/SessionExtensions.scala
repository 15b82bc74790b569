package org.metastore.spark

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

import org.metastore.spark.adapter.{BeginPlanning, MetastoreRule, PhysicalScanColumnarRule, PhysicalScanRule}
import org.metastore.spark.analyze.AnalyzeRule
import org.metastore.spark.cardinality.CboSwitch
import org.metastore.spark.sql.{
  AnswerCalls, DataSourceByName, DataSourceInPython, DeferredAnswers, MetastoreParser, OutermostParser, ReadNarrowed, TableFunctions
}
import org.metastore.spark.store.WarmUp

/**
 * Everything that the shim adds to a session of one line of Spark, one line each.
 *
 * `MetastoreExtensions` registers itself and may be listed in `spark.sql.extensions` too, so `apply` can run twice for one
 * session: each line must be harmless when repeated.
 */
class SessionExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    TableFunctions.register()
    extensions.injectParser((_, delegate) => MetastoreParser(delegate))
    OutermostParser.list()
    DataSourceInPython.inject(extensions)
    extensions.injectResolutionRule(new AnalyzeRule(_))
    extensions.injectPostHocResolutionRule(_ => AnswerCalls)
    extensions.injectPostHocResolutionRule(new DataSourceByName(_))
    extensions.injectOptimizerRule(_ => ReadNarrowed)
    extensions.injectPlanNormalizationRule(_ => BeginPlanning)
    extensions.injectPreCBORule(new MetastoreRule(_))
    extensions.injectPlannerStrategy(_ => DeferredAnswers)
    extensions.injectQueryStagePrepRule(new PhysicalScanRule(_))
    extensions.injectColumnar(new PhysicalScanColumnarRule(_))
    MetastoreConf.warnOfMisspelt()
    CboSwitch()
    WarmUp.begin()
  }
}
