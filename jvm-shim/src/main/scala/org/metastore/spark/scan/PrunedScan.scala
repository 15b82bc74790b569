package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.tables.DelegateProxy

/** A stand-in for the scan of a table format: what was decided of its files, whatever the format is. */
private[scan] trait PrunedScan {

  /** The decision; once a join has chosen files, that one. */
  def decision: ScanDecision

  /** The same scan, to be told the keys of a join when the query runs; None where keys choose none of its files. */
  def withKeys: Option[Scan]

  /** The column by which the scan is told the keys that an expression has to be one of, if it is told keys. */
  def nameOf(key: Expression): Option[Attribute]
}

private[scan] object PrunedScan {

  /** The stand-in behind a scan, if the scan passed through us. */
  def find(scan: Scan): Option[PrunedScan] = DelegateProxy.find(scan).collect { case pruned: PrunedScan =>
    pruned
  }

  /** The decision on the scan of a relation. */
  def decisionOf(relation: DataSourceV2ScanRelation): Option[ScanDecision] =
    find(relation.scan).map(_.decision)

  /** A scan that is told keys, in the place of a scan whose files they may choose. */
  def withKeys(scan: Scan): Option[Scan] = find(scan).flatMap(_.withKeys)
}
