package org.metastore.spark.sql

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** Rules that run before Spark resolves names. */
object EarlyRules {

  /** Injects a rule, and returns whether Spark has a place for it: this Spark has none. */
  def inject(extensions: SparkSessionExtensions, rule: SparkSession => Rule[LogicalPlan]): Boolean = false
}
