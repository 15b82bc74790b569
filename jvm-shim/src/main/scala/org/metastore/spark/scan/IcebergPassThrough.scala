package org.metastore.spark.scan

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.metastore.PushedPredicates

import org.metastore.spark.estimates.V2Statistics
import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Keeps scans as Iceberg builds them, to list their files, with predicates pushed as by `pruning`. */
private[scan] final class IcebergListing(pruning: IcebergInterceptor) extends IcebergInterceptor {
  private var notPushed = Seq.empty[Predicate]

  /** The predicates that were not pushed to Iceberg. */
  def unasked: Seq[Predicate] = notPushed

  override def fingerprint: AnyRef = pruning.fingerprint
  override def keepsFromFormat(predicate: Predicate): Boolean = pruning.keepsFromFormat(predicate)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = {
    notPushed = pushed.unasked
    scan
  }
}

/**
 * Drops no file of scans, for a reason.
 *
 * @param hidesNumbers whether the optimizer does not get the table format's numbers
 */
private[scan] final class IcebergPassThrough(table: String, reason: Reason, hidesNumbers: Boolean)
  extends IcebergInterceptor {

  override val fingerprint: AnyRef = (reason, hidesNumbers)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan match {
    case _: LocalScan => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, Reason(ReasonCode.AnsweredByFormat)),
        _())
    case _ => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, reason),
        statistics =>
          if (hidesNumbers) V2Statistics.withoutColumns(statistics, scan.asInstanceOf[Scan].readSchema, None)
          else statistics())
  }
}
