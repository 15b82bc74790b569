package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.types.StructType

/** The numbers of the files that a file relation reads, where Spark looks for them: in its catalog table. */
object V1Statistics {

  /** The numbers; None where the rows of a file are unknown: a size without rows says less than Spark's own. */
  def fromFiles(
      schema: StructType,
      files: ScanStatistics,
      keyOf: String => Option[String]): Option[CatalogStatistics] =
    for (statistics <- OptimizerStatistics.fromFiles(schema, files, keyOf)) yield {
      val columns = for ((field, stat) <- statistics.columns)
        yield field.name -> stat.toCatalogColumnStat(field.name, field.dataType)
      CatalogStatistics(statistics.size, Some(statistics.rows), columns.toMap)
    }
}
