package org.metastore.spark.scan

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.metastore.PushedPredicates

import org.metastore.spark.estimates.V2Statistics
import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Leaves scans as Iceberg builds them, to list their files: predicates are pushed as `pruning` pushes them. */
private[scan] final class IcebergListing(pruning: IcebergInterceptor) extends IcebergInterceptor {
  private var kept = Seq.empty[Predicate]

  /** The predicates that Iceberg was not asked about. */
  def unasked: Seq[Predicate] = kept

  override def fingerprint: AnyRef = pruning.fingerprint
  override def keepsFromFormat(predicate: Predicate): Boolean = pruning.keepsFromFormat(predicate)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = {
    kept = pushed.unasked
    scan
  }
}

/** Drops no file of scans, for a reason; where `harmless`, the optimizer does not get the table format's numbers. */
private[scan] final class IcebergPassThrough(table: String, why: Reason, harmless: Boolean)
  extends IcebergInterceptor {

  override val fingerprint: AnyRef = (why, harmless)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan match {
    case _: LocalScan => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, Reason(ReasonCode.AnsweredByFormat)),
        _())
    case _ => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, why),
        own =>
          if (harmless) V2Statistics.withoutColumns(own, scan.asInstanceOf[Scan].readSchema, None)
          else own())
  }
}
