package org.metastore.spark.cardinality

import org.apache.spark.sql.catalyst.expressions.{AttributeMap, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.types.{StringType, StructField, StructType}

/**
 * What Spark is told of a scan.
 *
 * @param rows    at least one: no row would make every plan above look free
 * @param columns those of which something is known
 * @param size    bytes of the rows, as Spark computes them of these very numbers
 */
private[cardinality] final case class OptimizerStatistics(rows: BigInt, columns: Seq[(StructField, ColumnStat)], size: BigInt)

private[cardinality] object OptimizerStatistics {
  // As EstimationUtils.getSizePerRow has it.
  private val (rowOverhead, stringOverhead) = (8L, 12L)

  /** @param known finds the numbers of a column */
  def of(schema: StructType, rows: Double, known: StructField => Option[ColumnStat]): OptimizerStatistics = {
    val count = BigInt(math.max(1L, math.round(rows)))
    val columns = narrowColumns(schema.fields.toSeq.flatMap(field => known(field).map(field -> _)))
    val byName = columns.map { case (field, stat) => field.name -> stat }.toMap
    val attributes = schema.fields.toSeq.map(f => AttributeReference(f.name, f.dataType, f.nullable)())
    val stats = AttributeMap(attributes.flatMap(a => byName.get(a.name).map(a -> _)))
    OptimizerStatistics(count, columns, EstimationUtils.getOutputSize(attributes, count, stats))
  }

  /**
   * The columns without the bytes that Spark adds to each row where rows are counted, and does not add where they are not: a
   * side of a join would no longer be broadcast for being known better. At most half of a column's width is taken off, so that
   * rows which joins put together of several scans, and to which Spark adds the bytes once, stay near their width.
   */
  private def narrowColumns(columns: Seq[(StructField, ColumnStat)]): Seq[(StructField, ColumnStat)] =
    columns.zipWithIndex.map { case ((field, stat), place) =>
      val part = rowOverhead / columns.size + (if (place < rowOverhead % columns.size) 1 else 0)
      val lengths = stat.avgLen.map { length =>
        val width = if (field.dataType == StringType) length + stringOverhead else length
        math.max(0L, length - math.min(width / 2, part))
      }
      field -> stat.copy(avgLen = lengths)
    }
}
