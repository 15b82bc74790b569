package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Optional
import org.metastore.spark.tables.{DelegateProxy, FileRelation}

/** A proxy for the scan of a table format, with the decision on its files. */
private[scan] trait PrunedScan {

  /** The decision on the files; after a join has chosen among them, the newer decision. */
  def decision: ScanDecision

  /** The scan that gets the keys of a join at run time, or None if keys cannot choose among its files. */
  def withKeys: Option[Scan]

  /** The column that replaces an expression in filters by keys, if the scan gets keys. */
  def nameOf(key: Expression): Option[Attribute]
}

/** Knows both kinds of scans whose files we choose: those behind a proxy, and marked file relations. */
private[scan] object PrunedScan {
  val Decision: TreeNodeTag[ScanDecision] = TreeNodeTag[ScanDecision]("metastore.decision")

  /** The proxy behind a scan, or None if the scan is not ours. */
  def fromScan(scan: Scan): Option[PrunedScan] = DelegateProxy.fromProxy(scan) match {
    case Some(pruned: PrunedScan) => Some(pruned)
    case _ => None
  }

  /** The decision on a prepared relation; a file relation has it as a tag, as its scan is planned later. */
  def decision(relation: LogicalPlan): Option[ScanDecision] = relation match {
    case scan: DataSourceV2ScanRelation => fromScan(scan.scan).map(_.decision)
    case other => other.getTagValue(Decision)
  }

  /** The relation that gets the keys of a join at run time; None if keys may not choose among its files. */
  def withKeys(relation: LogicalPlan): Option[LogicalPlan] = relation match {
    case scan: DataSourceV2ScanRelation =>
      for (joined <- fromScan(scan.scan).flatMap(_.withKeys))
        yield WithTags(CaseClassCopy(scan, "scan" -> joined), scan)
    case FileRelation(files) => Optional.when(ScanMark.permit(files).exists(_.takesKeys))(relation)
    case _ => None
  }

  /** Whether a relation reads the table whose rows a command changes. */
  def isCommandTarget(relation: LogicalPlan): Boolean = relation match {
    case scan: DataSourceV2ScanRelation => RowLevelTarget.isRead(scan.relation)
    case FileRelation(files) => ScanMark.permit(files).exists(_.command.isDefined)
    case _ => false
  }
}
