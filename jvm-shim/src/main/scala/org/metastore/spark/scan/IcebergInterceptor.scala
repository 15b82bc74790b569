package org.metastore.spark.scan

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.metastore.PushedPredicates

/** Changes the scans of one Iceberg relation when Iceberg has built them. */
private[scan] trait IcebergInterceptor {

  /** Equal for relations that are treated alike: Spark recognises equal parts of a plan by it. */
  def fingerprint: AnyRef

  /** Whether Iceberg is not to skip by a predicate: Spark evaluates it on each row. */
  def keepsFromFormat(predicate: Predicate): Boolean = false

  /** The scan in place of one that Iceberg built. */
  def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef
}
