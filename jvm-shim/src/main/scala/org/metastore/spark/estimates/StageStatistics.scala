package org.metastore.spark.estimates

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.AttributeMap
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.Attempt

/**
 * Keeps column statistics when adaptive execution plans a query again.
 *
 * A stage that has run has numbers of rows and bytes, but no column statistics. Spark then estimates each
 * join with it as a cartesian product, and no longer broadcasts a side that was rightly estimated to be
 * small.
 */
object StageStatisticsRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!conf.cboEnabled || !new MetastoreConf(conf).cboEnabled) plan
    else plan.transform {
      case stage: LogicalQueryStage if !stage.isInstanceOf[StageWithColumns] =>
        new StageWithColumns(stage)
    }
}

/** A stage with the rows that it returned and the columns that were estimated. */
private final class StageWithColumns(stage: LogicalQueryStage)
  extends LogicalQueryStage(stage.logicalPlan, stage.physicalPlan)
  with Logging {

  copyTagsFrom(stage)

  override def computeStats(): Statistics = {
    val measured = super.computeStats()
    Attempt.recover(if (measured.isRuntime) withColumns(measured, logicalPlan.stats) else measured) {
      failure =>
        logDebug("A stage that has run has no column statistics", failure)
        measured
    }
  }

  private def withColumns(measured: Statistics, estimated: Statistics): Statistics = {
    val scaledStatistics =
      for {
        rows <- measured.rowCount
        expected <- estimated.rowCount
        if expected > 0
      } yield {
        val ratio = rows.toDouble / expected.toDouble
        val columns = for ((column, stat) <- estimated.attributeStats.toSeq)
          yield column -> scaled(stat, ratio)
        measured.copy(attributeStats = AttributeMap(columns))
      }
    scaledStatistics.getOrElse(measured)
  }

  // Distinct counts stay: the probability that two rows join does not depend on the number of rows.
  private def scaled(stat: ColumnStat, ratio: Double): ColumnStat = stat.copy(
    nullCount = stat.nullCount.map(nulls => BigDecimal(nulls.toDouble * ratio).toBigInt),
    histogram = stat.histogram.map(histogram => histogram.copy(height = histogram.height * ratio)))

  // Never equal to the stage that it replaces: Spark drops the result of a rule that equals the plan before.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[StageWithColumns]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode: Int = super.hashCode
}
