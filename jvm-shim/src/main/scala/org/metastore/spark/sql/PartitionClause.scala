package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.plans.logical.{AnalyzeColumn, AnalyzeTable, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/** The PARTITION clause of `ANALYZE TABLE t PARTITION (...) COMPUTE STATISTICS FOR COLUMNS ...`. */
object PartitionClause {
  private val tag = TreeNodeTag[Map[String, Option[String]]]("metastore.partition")

  /** The clause of a plan that `parse` returned; empty if the statement has none. */
  def fromPlan(plan: LogicalPlan): Map[String, Option[String]] = plan.getTagValue(tag).getOrElse(Map.empty)

  /** Parses a text and stores the clause in the plan. */
  def parse(sql: String, parse: String => LogicalPlan): LogicalPlan = {
    val plan = parse(sql)
    plan match {
      case analyze: AnalyzeColumn => withoutColumns(sql).map(parse).foreach {
          case AnalyzeTable(_, partition, _) if partition.nonEmpty => analyze.setTagValue(tag, partition)
          case _ =>
        }
      case _ =>
    }
    plan
  }

  /** The text up to COMPUTE STATISTICS, if it has a PARTITION clause. */
  private def withoutColumns(sql: String): Option[String] = {
    val words = FunctionNames.tokens(sql).map(token => token.getText -> token.getStopIndex)
    val statistics = words.indexWhere(_._1 == "STATISTICS", words.lastIndexWhere(_._1 == "COMPUTE"))
    if (statistics < 0 || !words.take(statistics).exists(_._1 == "PARTITION")) None
    else Some(sql.substring(0, sql.offsetByCodePoints(0, words(statistics)._2 + 1)))
  }
}
