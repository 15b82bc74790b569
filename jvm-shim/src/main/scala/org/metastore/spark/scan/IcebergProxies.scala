package org.metastore.spark.scan

import java.lang.reflect.Method

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, Scan, ScanBuilder, Statistics, SupportsRuntimeV2Filtering}
import org.apache.spark.sql.metastore.PushedPredicates

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.tables.DelegateProxy

/** Stands before what has scan builders, a SparkTable or the UPDATE, DELETE or MERGE of one: its scans pass through us. */
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

/** Stands before a SparkScanBuilder: what it builds is treated once Iceberg's own push-down is done. */
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

/** Stands before a scan: its statistics, its text, its metrics and its identity tell what was dropped. */
private[scan] final class IcebergScanProxy(
    scan: AnyRef,
    planning: ScanDecision,
    statistics: (() => Statistics) => Statistics,
    planned: Option[IcebergTasks],
    val join: Option[IcebergJoin],
    isJoined: Boolean)
  extends DelegateProxy(scan) {

  // The keys of a join are a part of the plan above, and are not told before it runs.
  override protected def fingerprint: AnyRef = planning.fingerprint

  private val joined = if (isJoined) join.map(_.begin(planning)) else None

  def decision: ScanDecision = joined.fold(planning)(_.decision)

  /** The same scan, to be told keys when the query runs: scans that are not told them do not share it. */
  def withKeys: Scan = DelegateProxy.create(
    new IcebergScanProxy(scan, planning, statistics, planned, join, isJoined = true),
    classOf[Scan])

  private var estimated: Option[Statistics] = None
  private var batch: Option[Batch] = None

  override protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef] =
    method.getName match {
      case "description" => ScanPlanner.orElse(
          planning.table,
          Option.empty[AnyRef])(Some(s"${forward(method, arguments)} ${decision.label}"))
      case "estimateStatistics" => Some(estimate(() => forward(method, arguments).asInstanceOf[Statistics]))
      case "toBatch" => Some(batchOnce(() => forward(method, arguments)))
      case "filter" => // what a join's other side leaves at run time
        synchronized { batch = None }
        joined.map(_.filter(delegate, arguments(0).asInstanceOf[Array[Predicate]]) { theirs =>
          forward(method, Array[AnyRef](theirs))
        })
      case "supportedCustomMetrics" if joined.isDefined || decision.outcome.isRight => // keys may decide later
        Some(forward(method, arguments).asInstanceOf[Array[CustomMetric]] ++
          Array[CustomMetric](new FilesBeforeMetric, new FilesAfterMetric, new FilesByFormatMetric))
      case "reportDriverMetrics" =>
        ScanPlanner.orElse(planning.table, Option.empty[AnyRef]) {
          Some(remainingFiles.getOrElse(forward(
            method,
            arguments).asInstanceOf[Array[CustomTaskMetric]]) ++ FileMetrics.of(decision))
        }
      case _ => None
    }

  // A scan whose planning was another one's reports none, and no scan knows what was taken from it.
  private def remainingFiles: Option[Array[CustomTaskMetric]] = planned.filter(_.report.nonEmpty).map {
    tasks =>
      FileMetrics.remainingFiles(
        tasks,
        joined.fold(IcebergTasks.currentTasks(delegate))(_.tasks(delegate)).size)
  }

  private def batchOnce(own: () => AnyRef): Batch = synchronized {
    def made = joined.fold(own())(_.batchOf(delegate)(own()))
    if (batch.isEmpty)
      batch = Some(DelegateProxy.create(new IcebergBatchProxy(made, planning.fingerprint), classOf[Batch]))
    batch.get
  }

  private def estimate(own: () => Statistics): Statistics = synchronized {
    if (estimated.isEmpty) estimated = Some(statistics(own))
    estimated.get
  }
}

/** Two scans of one table with equal pushed filters have equal batches for Iceberg, whatever we dropped of each. */
private[scan] final class IcebergBatchProxy(batch: AnyRef, kept: AnyRef) extends DelegateProxy(batch) {
  private var partitions: Option[AnyRef] = None

  override protected def fingerprint: AnyRef = kept

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
  def before(
      scan: AnyRef,
      decision: ScanDecision,
      statistics: (() => Statistics) => Statistics,
      planned: Option[IcebergTasks] = None,
      join: Option[IcebergJoin] = None): Scan =
    DelegateProxy.create(
      new IcebergScanProxy(scan, decision, statistics, planned, join, isJoined = false),
      classOf[Scan])

  /** A scan that the keys of a join may choose files of, if it is ours and Spark tells it. */
  def withKeys(scan: Scan): Option[Scan] =
    if (!scan.isInstanceOf[SupportsRuntimeV2Filtering]) None
    else DelegateProxy.of(scan).collect {
      case proxy: IcebergScanProxy if proxy.join.isDefined => proxy.withKeys
    }

  /** The column by which such a scan is told the keys that an expression has to be one of. */
  def nameOf(scan: Scan, key: Expression): Option[Attribute] =
    DelegateProxy.of(scan).collect { case proxy: IcebergScanProxy => proxy.joined }.flatten.map(_.nameOf(key))

  /** The decision behind a scan, if it passed through us. */
  def decisionOf(scan: Scan): Option[ScanDecision] = DelegateProxy.of(scan).collect {
    case proxy: IcebergScanProxy => proxy.decision
  }
}

/** A number of data files. Spark creates it again by its class name, to show its value. */
private[scan] abstract class FilesMetric(override val name: String, what: String) extends CustomSumMetric {
  override def description: String = s"Metastore: data files $what"
}

/** Live data files of the snapshot. */
class FilesBeforeMetric extends FilesMetric(FileMetrics.Before, "before")

/** Data files that are left to read. */
class FilesAfterMetric extends FilesMetric(FileMetrics.After, "after")

/** Data files of the snapshot that the table format left out. */
class FilesByFormatMetric extends FilesMetric(FileMetrics.ByFormat, "skipped by the table format")

private[scan] final case class FileCount(name: String, value: Long) extends CustomTaskMetric

private[scan] object FileMetrics {
  val Before = "metastoreFilesBefore"
  val After = "metastoreFilesAfter"
  val ByFormat = "metastoreFilesByFormat"

  /** What was decided, in numbers. */
  def of(decision: ScanDecision): Array[CustomTaskMetric] = decision.outcome match {
    case Right(_) => Array(
        FileCount(Before, decision.total),
        FileCount(After, decision.after.toLong),
        FileCount(ByFormat, decision.skippedByFormat))
    case Left(_) => Array.empty
  }

  /** What the table format says of the planning that found `planned`, for the files that are left of it. */
  def remainingFiles(planned: IcebergTasks, left: TaskTotals): Array[CustomTaskMetric] = {
    val counted = Map(
      "resultDataFiles" -> left.files,
      "totalDataFileSize" -> left.bytes,
      "resultDeleteFiles" -> left.deletes,
      "totalDeleteFileSize" -> left.deletesBytes)
    planned.report.map { metric =>
      val skipped = if (metric.name == "skippedDataFiles") planned.tasks.size - left.files else 0L
      FileCount(metric.name, counted.getOrElse(metric.name, metric.value + skipped))
    }.toArray
  }
}
