package org.metastore.spark.estimates

import java.util.{HashMap, Map => JavaMap, Optional, OptionalLong}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{AttributeMap, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.Statistics
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.types.{StringType, StructField, StructType}

import org.metastore.spark.reason.Recoverable

/** What Spark is told of a scan. */
private[estimates] final case class OptimizerStatistics(
    rows: BigInt,
    columns: Seq[(StructField, ColumnStat)],
    size: BigInt)

private[estimates] object OptimizerStatistics {
  // As EstimationUtils.getSizePerRow has it.
  private val (rowOverhead, stringOverhead) = (8L, 12L)

  /** What is known of the files that a scan reads; None where the rows of one are unknown. */
  def of(
      schema: StructType,
      files: ScanStatistics,
      keyOf: String => Option[String]): Option[OptimizerStatistics] =
    files.rowCount.map(of(schema, _, field => keyOf(field.name).flatMap(files.column(_, field.dataType))))

  /** @param known finds the numbers of a column */
  def of(schema: StructType, rows: Double, known: StructField => Option[ColumnStat]): OptimizerStatistics = {
    val count = BigInt(math.max(1L, math.round(rows)))
    val columns = narrowColumns(schema.fields.toSeq.flatMap(field => known(field).map(field -> _)))
    val byName = columns.map { case (field, stat) => field.name -> stat }.toMap
    val attributes = schema.fields.toSeq.map(f => AttributeReference(f.name, f.dataType, f.nullable)())
    val stats = AttributeMap(attributes.flatMap(a => byName.get(a.name).map(a -> _)))
    OptimizerStatistics(count, columns, EstimationUtils.getOutputSize(attributes, count, stats))
  }

  /** Takes off what Spark adds to each counted row: a side of a join would no longer be broadcast for being known better. */
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

/** The numbers of the files that a file relation reads, where Spark looks for them: in its catalog table. */
object V1Statistics {

  /** None where the rows of a file are unknown: a size without rows says less than Spark's own. */
  def of(
      schema: StructType,
      files: ScanStatistics,
      keyOf: String => Option[String]): Option[CatalogStatistics] =
    OptimizerStatistics.of(schema, files, keyOf).map { told =>
      val columns = told.columns.map { case (field, stat) =>
        field.name -> stat.toCatalogColumnStat(field.name, field.dataType)
      }
      CatalogStatistics(told.size, Some(told.rows), columns.toMap)
    }
}

/** Answers in Iceberg's place, whose counts without bounds harm the optimizer, and which fails on dropped columns. */
object V2Statistics extends Logging {

  /** The statistics of the files read; `known` are their rows as the format counts them. */
  def answer(
      own: () => Statistics,
      schema: StructType,
      known: Option[Double],
      numbers: Option[ScanStatistics],
      keyOf: String => Option[String]): Statistics =
    try numbers.flatMap(OptimizerStatistics.of(schema, _, keyOf)).fold(withoutColumns(
        own,
        schema,
        known))(answered)
    catch {
      case Recoverable(e) =>
        logWarning("The optimizer gets no column statistics from the Metastore", e)
        withoutColumns(own, schema, known)
    }

  /** Iceberg's row count and size alone, or the given rows where it fails. */
  def withoutColumns(own: () => Statistics, schema: StructType, known: Option[Double]): Statistics =
    try {
      val theirs = own()
      new ReportedStatistics(theirs.sizeInBytes, theirs.numRows, new HashMap)
    } catch {
      case Recoverable(e) =>
        logDebug("The table format could not estimate its scan", e)
        known.fold[Statistics](new ReportedStatistics(OptionalLong.empty, OptionalLong.empty, new HashMap)) {
          rows =>
            answered(OptimizerStatistics.of(schema, rows, (_: StructField) => None))
        }
    }

  private def answered(told: OptimizerStatistics): Statistics = {
    val named = new HashMap[NamedReference, ColumnStatistics]
    told.columns.foreach { case (field, stat) => named.put(RawName(field.name), new Column(stat)) }
    new ReportedStatistics(
      OptionalLong.of(told.size.min(BigInt(Long.MaxValue)).toLong),
      OptionalLong.of(told.rows.toLong),
      named)
  }

  private final class ReportedStatistics(
      size: OptionalLong,
      rows: OptionalLong,
      columns: JavaMap[NamedReference, ColumnStatistics])
    extends Statistics {
    override def sizeInBytes: OptionalLong = size
    override def numRows: OptionalLong = rows
    override def columnStats: JavaMap[NamedReference, ColumnStatistics] = columns
  }

  /** Spark compares `describe()` with the column's name: a quoted name would lose its statistics. */
  private final case class RawName(name: String) extends NamedReference {
    override def fieldNames: Array[String] = Array(name)
    override def describe: String = name
  }

  private final class Column(stat: ColumnStat) extends ColumnStatistics {
    override def distinctCount: OptionalLong = long(stat.distinctCount)
    override def nullCount: OptionalLong = long(stat.nullCount)
    override def min: Optional[Object] = value(stat.min)
    override def max: Optional[Object] = value(stat.max)
    override def avgLen: OptionalLong = long(stat.avgLen.map(BigInt(_)))
    override def maxLen: OptionalLong = long(stat.maxLen.map(BigInt(_)))

    private def long(number: Option[BigInt]) =
      number.fold(OptionalLong.empty)(n => OptionalLong.of(n.min(Long.MaxValue).toLong))
    private def value(any: Option[Any]): Optional[Object] =
      Optional.ofNullable(any.map(_.asInstanceOf[Object]).orNull)
  }
}
