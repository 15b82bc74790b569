package org.metastore.spark.scan

import java.lang.reflect.Method

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.metastore.PushedPredicates

import org.metastore.spark.tables.DelegateProxy

/** A proxy before a SparkTable or row-level operation: the interceptor changes the scans that it builds. */
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

/** A proxy before a SparkScanBuilder. The interceptor changes the scan after Iceberg's own push-down. */
private[scan] final class IcebergBuilderProxy(builder: AnyRef, scans: IcebergInterceptor)
  extends DelegateProxy(builder) {
  override protected def fingerprint: AnyRef = scans.fingerprint

  private var pushed = PushedPredicates()

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "pushPredicates" =>
        val predicates = arguments(0).asInstanceOf[Array[Predicate]]
        val (notPushed, pushable) = predicates.partition(scans.keepsFromFormat)
        val remaining = forward(method, Array(pushable)).asInstanceOf[Array[Predicate]]
        pushed = PushedPredicates(notPushed.toSeq, pushable.toSeq.filterNot(remaining.contains(_)))
        Some(remaining ++ notPushed)
      case "build" => Some(scans.prepare(forward(method, arguments), pushed))
      case _ => None
    }
}
