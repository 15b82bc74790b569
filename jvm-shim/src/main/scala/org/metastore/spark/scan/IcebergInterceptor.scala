package org.metastore.spark.scan

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.metastore.PushedPredicates

/** Changes the scans of one Iceberg relation when Iceberg has built them. */
private[scan] trait IcebergInterceptor {

  /** The identity of the change. Spark recognizes equal parts of a plan by it. */
  def fingerprint: AnyRef

  /** Whether a predicate is not pushed to Iceberg: Spark then evaluates it on each row. */
  def keepsFromFormat(predicate: Predicate): Boolean = false

  /** Makes the scan that replaces the one that Iceberg built. */
  def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef
}
