package org.metastore.spark.sql

import scala.util.Try

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.metastore.spark.tables.Reflection

/** Rules that run before Spark resolves names. */
object EarlyRules {

  /** Injects a rule, and returns whether Spark has a place for it: not every release of 4.0 has one. */
  def inject(extensions: SparkSessionExtensions, rule: SparkSession => Rule[LogicalPlan]): Boolean =
    Try(Reflection.call[AnyRef](extensions, "injectHintResolutionRule", rule)).isSuccess
}
