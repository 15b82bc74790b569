package org.metastore.spark.cardinality

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.types.StructType

/** The numbers of the files that a file relation reads, where Spark looks for them: in its catalog table. */
object V1Statistics {

  /** None where the rows of a file are unknown: a size without rows says less than Spark's own. */
  def of(
      schema: StructType, files: ScanStatistics,
      keyOf: String => Option[String]): Option[CatalogStatistics] = files.rowCount.map { rows =>
    val told = OptimizerStatistics.of(schema, rows, field => keyOf(field.name).flatMap(files.column(_, field.dataType)))
    val columns = told.columns.map { case (field, stat) => field.name -> stat.toCatalogColumnStat(field.name, field.dataType) }
    CatalogStatistics(told.size, Some(told.rows), columns.toMap)
  }
}
