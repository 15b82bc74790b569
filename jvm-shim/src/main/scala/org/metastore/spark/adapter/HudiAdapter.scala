package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Hudi tables as of one instant. */
private[adapter] final class HudiAdapter extends FileRelationAdapter[HudiScan] {

  override protected def tableOf(files: HadoopFsRelation, label: Option[String]): Option[HudiScan] = HudiScan.of(files, label)

  override protected def restriction(files: HadoopFsRelation, table: HudiScan, planner: ScanPlanner): Option[Reason] =
    HudiAdapter.hudiQuery.orElse(table.refusal.map(ParquetAdapter.refuse)).orElse(ParquetAdapter.conversionRefusal(files))

  override protected def countedFiles(
      files: HadoopFsRelation, table: HudiScan, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] =
    Some(table.listSlices(files.location, table.partitionFilters(conjuncts)).files)

  /** Numbers of Spark's own ANALYZE are of an unknown instant, and count files that are no longer read. */
  override protected def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = None
}

private[adapter] object HudiAdapter {
  private val packages = Seq("org.apache.spark.sql.hudi.command.", "org.apache.hudi.")

  /** Hudi's commands read their target by queries of their own, whose plans do not show what they are for: the stack does. */
  private def hudiQuery: Option[Reason] =
    Thread.currentThread.getStackTrace.iterator.map(_.getClassName).find(name => packages.exists(name.startsWith))
      .map(name => Reason(ReasonCode.RowLevelCommand, "command" -> name.split('.').last.takeWhile(_ != '$')))
}
