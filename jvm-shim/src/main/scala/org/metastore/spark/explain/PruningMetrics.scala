package org.metastore.spark.explain

import com.codahale.metrics.{Counter, MetricRegistry}

import org.apache.spark.SparkContext
import org.apache.spark.metastore.MetricsSource

import org.metastore.spark.pruning.ScanDecision

/**
 * Counts the pruning of this driver's queries, as a source of Spark's metrics (docs/operating.md). Sinks and
 * the servlets of JSON and Prometheus show these counters beside Spark's own.
 */
private[explain] object PruningMetrics {
  private val Name = "metastore"
  private val registry = new MetricRegistry
  private val scans: Counter = registry.counter("scans")
  private val filesTotal: Counter = registry.counter("filesTotal")
  private val filesSkipped: Counter = registry.counter("filesSkipped")
  private val bytesSkipped: Counter = registry.counter("bytesSkipped")
  private val planningMillis: Counter = registry.counter("planningMillis")

  /** Registers the counters with Spark's metrics system. */
  def show(context: SparkContext): Unit = MetricsSource.register(context, Name, registry)

  /** Counts the scans of a query that ran, and the time that its planning took. */
  def count(decisions: Seq[ScanDecision], millis: Long): Unit = {
    if (decisions.nonEmpty) planningMillis.inc(millis)
    for (scan <- decisions) {
      scans.inc()
      filesTotal.inc(scan.total)
      filesSkipped.inc(scan.total - scan.after)
      bytesSkipped.inc(scan.bytesSkipped)
      for (reason <- scan.outcome.left) registry.counter(s"leftAlone.${reason.code.name}").inc()
    }
  }
}
