package org.metastore.spark.estimates

import java.util.{HashMap, Map => JavaMap, Optional, OptionalLong}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.Statistics
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.types.{StructField, StructType}

import org.metastore.spark.reason.Attempt

/**
 * Replaces the statistics that a table format reports for a scan: counts without bounds harm the optimizer,
 * and a format may fail on dropped columns.
 */
object V2Statistics extends Logging {

  /**
   * The statistics of the files read.
   *
   * @param rows their number of rows, as the format counts them
   */
  def answer(
      formatStatistics: () => Statistics,
      schema: StructType,
      rows: Option[Double],
      statistics: Option[ScanStatistics],
      keyOf: String => Option[String]): Statistics =
    Attempt.recover {
      statistics.flatMap(OptimizerStatistics.fromFiles(schema, _, keyOf)) match {
        case Some(computed) =>
          report(computed)
        case None =>
          withoutColumns(formatStatistics, schema, rows)
      }
    } { failure =>
      logWarning("The optimizer gets no column statistics from the Metastore", failure)
      withoutColumns(formatStatistics, schema, rows)
    }

  /** The format's row count and size alone, or the given rows if it fails. */
  def withoutColumns(
      formatStatistics: () => Statistics,
      schema: StructType,
      rows: Option[Double]): Statistics =
    Attempt.recover[Statistics] {
      val reported = formatStatistics()
      new ReportedStatistics(reported.sizeInBytes, reported.numRows, new HashMap)
    } { failure =>
      logDebug("The table format could not estimate its scan", failure)
      rows match {
        case Some(count) =>
          report(OptimizerStatistics.fromRows(schema, count, (_: StructField) => None))
        case None =>
          new ReportedStatistics(OptionalLong.empty, OptionalLong.empty, new HashMap)
      }
    }

  private def report(statistics: OptimizerStatistics): Statistics = {
    val columns = new HashMap[NamedReference, ColumnStatistics]
    for ((field, stat) <- statistics.columns) columns.put(RawName(field.name), new Column(stat))
    new ReportedStatistics(
      OptionalLong.of(statistics.size.min(BigInt(Long.MaxValue)).toLong),
      OptionalLong.of(statistics.rows.toLong),
      columns)
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
