package org.metastore.spark.scan

import java.lang.reflect.Method

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.metastore.PushedPredicates

import org.metastore.spark.tables.DelegateProxy

/** A proxy before a source of scan builders, such as a SparkTable or a row-level operation: its scans pass through us. */
private[scan] final class IcebergSourceProxy(source: AnyRef, scans: IcebergInterceptor)
  extends DelegateProxy(source) {
  override protected def fingerprint: AnyRef = scans.fingerprint

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "newScanBuilder" =>
        val builder = new IcebergBuilderProxy(forward(method, arguments), scans)
        Some(DelegateProxy.create(builder, classOf[ScanBuilder]))
      case _ => None
    }
}

/** A proxy before a SparkScanBuilder: the interceptor changes the scan once Iceberg's own push-down is done. */
private[scan] final class IcebergBuilderProxy(builder: AnyRef, scans: IcebergInterceptor)
  extends DelegateProxy(builder) {
  override protected def fingerprint: AnyRef = scans.fingerprint

  private var pushed = PushedPredicates()

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "pushPredicates" =>
        val (kept, asked) = arguments(0).asInstanceOf[Array[Predicate]].partition(scans.keepsFromFormat)
        val left = forward(method, Array(asked)).asInstanceOf[Array[Predicate]]
        pushed = PushedPredicates(kept.toSeq, asked.toSeq.filterNot(left.contains(_)))
        Some(left ++ kept)
      case "build" => Some(scans.prepare(forward(method, arguments), pushed))
      case _ => None
    }
}
