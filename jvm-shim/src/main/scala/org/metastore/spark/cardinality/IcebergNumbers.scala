package org.metastore.spark.cardinality

import java.util.{HashMap => JavaMap, Map, Optional, OptionalLong}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.Statistics
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.types.StructType

/**
 * Answers in Iceberg's place when Spark asks a scan for its statistics. Iceberg's own answer is harmful where cost-based
 * optimization is on: distinct counts without bounds, and an exception where a column with statistics was dropped.
 */
object V2Statistics extends Logging {

  /**
   * The statistics of the files read.
   *
   * @param own   Iceberg's answer, asked for where we know less
   * @param known rows of the files read, as the format counts them; None where unknown
   * @param keyOf the key of a top-level column in our statistics
   */
  def answer(
      own: () => Statistics, schema: StructType, known: Option[Double], numbers: Option[ScanStatistics],
      keyOf: String => Option[String]): Statistics =
    try {
      numbers.filter(_.rowCount.isDefined) match {
        case Some(files) =>
          answered(OptimizerStatistics.of(schema, files.rowCount.get, field => keyOf(field.name).flatMap(files.column(_, field.dataType))))
        case None => withoutColumns(own, schema, known)
      }
    } catch {
      case NonFatal(e) =>
        logWarning("The optimizer gets no column statistics from the Metastore", e)
        withoutColumns(own, schema, known)
    }

  /** Iceberg's row count and size alone, or the given rows where it fails. */
  def withoutColumns(own: () => Statistics, schema: StructType, known: Option[Double]): Statistics =
    try {
      val theirs = own()
      new ReportedStatistics(theirs.sizeInBytes, theirs.numRows, new JavaMap)
    } catch {
      case NonFatal(e) =>
        logDebug("The table format could not estimate its scan", e)
        known.map(rows => answered(OptimizerStatistics.of(schema, rows, _ => None))).getOrElse(new ReportedStatistics(OptionalLong.empty, OptionalLong.empty, new JavaMap))
    }

  private def answered(told: OptimizerStatistics): Statistics = {
    val named = new JavaMap[NamedReference, ColumnStatistics]
    told.columns.foreach { case (field, stat) => named.put(RawName(field.name), new Column(stat)) }
    new ReportedStatistics(OptionalLong.of(told.size.min(BigInt(Long.MaxValue)).toLong), OptionalLong.of(told.rows.toLong), named)
  }

  private final class ReportedStatistics(size: OptionalLong, rows: OptionalLong, columns: Map[NamedReference, ColumnStatistics])
    extends Statistics {
    override def sizeInBytes: OptionalLong = size
    override def numRows: OptionalLong = rows
    override def columnStats: Map[NamedReference, ColumnStatistics] = columns
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

    private def long(number: Option[BigInt]) = number.fold(OptionalLong.empty)(n => OptionalLong.of(n.min(Long.MaxValue).toLong))
    private def value(any: Option[Any]): Optional[Object] = Optional.ofNullable(any.map(_.asInstanceOf[Object]).orNull)
  }
}
