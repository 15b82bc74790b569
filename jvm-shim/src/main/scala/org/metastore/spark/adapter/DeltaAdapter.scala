package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Delta tables, which must find their own index in the relation until their filter of deleted rows is in place. */
private[adapter] final class DeltaAdapter extends FileRelationAdapter[DeltaScan] {

  override protected def tableOf(files: HadoopFsRelation, label: Option[String]): Option[DeltaScan] = DeltaScan.of(files, label)

  override protected def restriction(files: HadoopFsRelation, table: DeltaScan, planner: ScanPlanner): Option[Reason] =
    if (!planner.settings.pruneInsideWrites && DeltaScan.isInsideWrite(files)) Some(Reason(ReasonCode.InsideWrite))
    else ParquetAdapter.conversionRefusal(files)

  override protected def countedFiles(
      files: HadoopFsRelation, table: DeltaScan, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] = Some(table.deltaFiles)

  /** Numbers that ANALYZE TABLES of Spark once left in the catalog are of an unknown version. */
  override protected def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = None
}
