package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions.{AttributeMap, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.types.{StringType, StructField, StructType}

import org.metastore.spark.reason.Indexed

/** The statistics of a scan that Spark gets. */
private[estimates] final case class OptimizerStatistics(
    rows: BigInt,
    columns: Seq[(StructField, ColumnStat)],
    size: BigInt)

private[estimates] object OptimizerStatistics {
  // As EstimationUtils.getSizePerRow has it.
  private val (rowOverhead, stringOverhead) = (8L, 12L)

  /** The statistics of the files that a scan reads; None if the number of rows of one is unknown. */
  def fromFiles(
      schema: StructType,
      files: ScanStatistics,
      keyOf: String => Option[String]): Option[OptimizerStatistics] = {
    def stat(field: StructField): Option[ColumnStat] =
      keyOf(field.name).flatMap(files.column(_, field.dataType))
    files.rowCount.map(fromRows(schema, _, stat))
  }

  /** @param find finds the statistics of a column */
  def fromRows(
      schema: StructType,
      rows: Double,
      find: StructField => Option[ColumnStat]): OptimizerStatistics = {
    val count = BigInt(math.max(1L, math.round(rows)))
    val described = for (field <- schema.fields.toSeq; stat <- find(field)) yield field -> stat
    val columns = narrowColumns(described)
    val byName = Indexed.entries(columns) { case (field, stat) => field.name -> stat }
    val attributes = schema.fields.toSeq.map(f => AttributeReference(f.name, f.dataType, f.nullable)())
    val stats = for {
      attribute <- attributes
      stat <- byName.get(attribute.name)
    } yield attribute -> stat
    val size = EstimationUtils.getOutputSize(attributes, count, AttributeMap(stats))
    OptimizerStatistics(count, columns, size)
  }

  /** Subtracts the overhead that Spark adds to each row: it may make a join side too large to broadcast. */
  private def narrowColumns(columns: Seq[(StructField, ColumnStat)]): Seq[(StructField, ColumnStat)] =
    for (((field, stat), i) <- columns.zipWithIndex) yield {
      val part = rowOverhead / columns.size + (if (i < rowOverhead % columns.size) 1 else 0)
      val lengths = stat.avgLen.map { length =>
        val width = if (field.dataType == StringType) length + stringOverhead else length
        math.max(0L, length - math.min(width / 2, part))
      }
      field -> stat.copy(avgLen = lengths)
    }
}
