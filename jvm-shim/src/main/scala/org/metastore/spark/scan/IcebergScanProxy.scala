package org.metastore.spark.scan

import java.lang.reflect.Method

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, Scan, Statistics, SupportsRuntimeV2Filtering}

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.tables.DelegateProxy

/** A proxy before a scan: its statistics, description, metrics and identity show which files were dropped. */
private[scan] final class IcebergScanProxy(
    scan: AnyRef,
    planning: ScanDecision,
    statistics: (() => Statistics) => Statistics,
    planned: Option[IcebergTasks],
    val join: Option[IcebergJoin],
    isJoined: Boolean)
  extends DelegateProxy(scan)
  with PrunedScan {

  // The keys of a join belong to the plan above, and are unknown until it runs.
  override protected def fingerprint: AnyRef = planning.fingerprint

  private val joined = if (isJoined) join.map(_.begin(planning)) else None

  override def decision: ScanDecision = joined.fold(planning)(_.decision)

  // Scans without keys must not share the scan that gets them.
  override def withKeys: Option[Scan] =
    if (join.isEmpty || !scan.isInstanceOf[SupportsRuntimeV2Filtering]) None
    else {
      val proxy = new IcebergScanProxy(scan, planning, statistics, planned, join, isJoined = true)
      Some(DelegateProxy.create(proxy, classOf[Scan]))
    }

  override def nameOf(key: Expression): Option[Attribute] = joined.map(_.nameOf(key))

  private var estimated: Option[Statistics] = None
  private var batch: Option[Batch] = None

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "description" =>
        ScanPlanner.recover(planning.table, Option.empty[AnyRef]) {
          Some(s"${forward(method, arguments)} ${decision.label}")
        }
      case "estimateStatistics" => Some(estimate(() => forward(method, arguments).asInstanceOf[Statistics]))
      case "toBatch" => Some(batchOnce(() => forward(method, arguments)))
      case "filter" => // by the keys of a join's other side, at run time
        synchronized { batch = None }
        joined.map(_.filter(delegate, arguments(0).asInstanceOf[Array[Predicate]]) { filters =>
          forward(method, Array[AnyRef](filters))
        })
      // keys may decide later
      case "supportedCustomMetrics" if joined.isDefined || decision.outcome.isRight =>
        Some(forward(method, arguments).asInstanceOf[Array[CustomMetric]] ++
          Array[CustomMetric](new FilesBeforeMetric, new FilesAfterMetric, new FilesByFormatMetric))
      case "reportDriverMetrics" =>
        ScanPlanner.recover(planning.table, Option.empty[AnyRef]) {
          def formatMetrics = forward(method, arguments).asInstanceOf[Array[CustomTaskMetric]]
          Some(remainingMetrics.getOrElse(formatMetrics) ++ FileMetrics.fromDecision(decision))
        }
      case _ => None
    }

  // A scan that shares another one's planning has no report. Iceberg's own metrics count the tasks that we
  // removed.
  private def remainingMetrics: Option[Array[CustomTaskMetric]] =
    for (tasks <- planned if tasks.report.nonEmpty) yield {
      val remaining = joined.fold(IcebergTasks.currentTasks(delegate))(_.tasks(delegate))
      tasks.remainingMetrics(remaining.size)
    }

  private def batchOnce(makeBatch: () => AnyRef): Batch = synchronized {
    if (batch.isEmpty) {
      val remaining = joined.fold(makeBatch())(_.batchOf(delegate)(makeBatch()))
      batch =
        Some(DelegateProxy.create(new IcebergBatchProxy(remaining, planning.fingerprint), classOf[Batch]))
    }
    batch.get
  }

  private def estimate(formatStatistics: () => Statistics): Statistics = synchronized {
    if (estimated.isEmpty) estimated = Some(statistics(formatStatistics))
    estimated.get
  }
}

/** A proxy before a batch. Iceberg compares batches by pushed filters, and not by their files. */
private[scan] final class IcebergBatchProxy(batch: AnyRef, override protected val fingerprint: AnyRef)
  extends DelegateProxy(batch) {
  private var partitions: Option[AnyRef] = None

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "planInputPartitions" => synchronized {
          if (partitions.isEmpty) partitions = Some(forward(method, arguments))
          partitions
        }
      case _ => None
    }
}

private[scan] object IcebergScanProxy {

  /** Puts a proxy before a scan; `statistics` makes the optimizer's numbers from Iceberg's. */
  def before(
      scan: AnyRef,
      decision: ScanDecision,
      statistics: (() => Statistics) => Statistics,
      planned: Option[IcebergTasks] = None,
      join: Option[IcebergJoin] = None): Scan =
    DelegateProxy.create(
      new IcebergScanProxy(scan, decision, statistics, planned, join, isJoined = false),
      classOf[Scan])
}
