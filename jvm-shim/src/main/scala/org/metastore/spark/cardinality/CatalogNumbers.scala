package org.metastore.spark.cardinality

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{AttributeMap, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.types.StructType

/** The numbers of the files that a file relation reads, where Spark looks for them: in its catalog table. */
object CatalogNumbers {

  /** None where the rows of a file are unknown: a size without rows says less than Spark's own. */
  def of(
      schema: StructType, files: ScanStatistics,
      keyOf: String => Option[String]): Option[CatalogStatistics] = files.rowCount.map { rows =>
    // Zero rows would make every plan above look free.
    val count = BigInt(math.max(1L, math.round(rows)))
    val columns = schema.fields.toSeq.flatMap { field =>
      keyOf(field.name).flatMap(files.column(_, field.dataType)).map(field -> _)
    }
    val byName = columns.map { case (field, stat) => field.name -> stat }.toMap
    val attributes = schema.fields.toSeq.map(f => AttributeReference(f.name, f.dataType, f.nullable)())
    val stats = AttributeMap(attributes.flatMap(a => byName.get(a.name).map(a -> _)))
    val external = columns.map { case (field, stat) => field.name -> stat.toCatalogColumnStat(field.name, field.dataType) }
    CatalogStatistics(EstimationUtils.getOutputSize(attributes, count, stats), Some(count), external.toMap)
  }
}
