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
 * A stage that has run has numbers of rows and bytes but no column statistics. Spark then takes each join with it for a cartesian
 * product, and no longer broadcasts a side that was rightly estimated to be small.
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
    val came = super.computeStats()
    Attempt.recover(if (came.isRuntime) withColumns(came, logicalPlan.stats) else came) { failure =>
      logDebug("A stage that has run has no column statistics", failure)
      came
    }
  }

  private def withColumns(came: Statistics, estimated: Statistics): Statistics = {
    val scaledStatistics =
      for {
        rows <- came.rowCount
        expected <- estimated.rowCount
        if expected > 0
      } yield {
        val ratio = rows.toDouble / expected.toDouble
        val columns = for ((column, stat) <- estimated.attributeStats.toSeq)
          yield column -> scaled(stat, ratio)
        came.copy(attributeStats = AttributeMap(columns))
      }
    scaledStatistics.getOrElse(came)
  }

  // Distinct values stay: two rows are as likely to meet in a join, however many came.
  private def scaled(stat: ColumnStat, ratio: Double): ColumnStat = stat.copy(
    nullCount = stat.nullCount.map(nulls => BigDecimal(nulls.toDouble * ratio).toBigInt),
    histogram = stat.histogram.map(histogram => histogram.copy(height = histogram.height * ratio)))

  // Otherwise equal to the stage that it stands for, and a rule whose result is equal is taken for one that did nothing.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[StageWithColumns]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode: Int = super.hashCode
}
