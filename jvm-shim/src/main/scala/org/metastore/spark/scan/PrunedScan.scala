package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.tables.DelegateProxy

/** A proxy for the scan of a table format, with the decision on its files. */
private[scan] trait PrunedScan {

  /** The decision on the files; after a join has chosen among them, the newer decision. */
  def decision: ScanDecision

  /** The scan that gets the keys of a join at run time, or None if keys cannot choose among its files. */
  def withKeys: Option[Scan]

  /** The column that replaces an expression in filters by keys, if the scan gets keys. */
  def nameOf(key: Expression): Option[Attribute]
}

private[scan] object PrunedScan {

  /** The proxy behind a scan, or None if the scan is not ours. */
  def fromScan(scan: Scan): Option[PrunedScan] =
    DelegateProxy.fromProxy(scan).collect { case pruned: PrunedScan => pruned }

  /** The decision on the scan of a relation. */
  def decisionOf(relation: DataSourceV2ScanRelation): Option[ScanDecision] =
    fromScan(relation.scan).map(_.decision)

  /** The scan that gets keys in place of this one, or None if keys may not choose its files. */
  def withKeys(scan: Scan): Option[Scan] = fromScan(scan).flatMap(_.withKeys)
}
