package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.types.StructType

/** The statistics of the files that a file relation reads, as Spark keeps them in its catalog table. */
object V1Statistics {

  /** The statistics; None if the rows of a file are unknown: without them Spark's own estimate is better. */
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
