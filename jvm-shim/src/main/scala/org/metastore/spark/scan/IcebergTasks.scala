package org.metastore.spark.scan

import java.lang.reflect.Method
import java.util.{Collection => JavaCollection, List => JavaList}

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.spark.sql.connector.metric.CustomTaskMetric

import org.metastore.spark.pruning.DeletedRows
import org.metastore.spark.tables.{DeletedRowBounds, DeletedRowEstimates, Reflection, TaskDeletes}

/** What tasks read: data files and their bytes, delete files and theirs. */
private[scan] final case class TaskTotals(files: Long, bytes: Long, deletes: Long, deletesBytes: Long)

/** The tasks of an Iceberg scan: the data files that it is going to read. Equal scans share them, so that they name no scan. */
private[scan] final class IcebergTasks private (
    val tasks: IndexedSeq[AnyRef],
    loader: ClassLoader,
    val report: Seq[CustomTaskMetric],
    val live: Option[Long]) {
  private lazy val taskClass = Reflection.load("org.apache.iceberg.FileScanTask", loader)
  private lazy val fileOf =
    Reflection.method(Reflection.load("org.apache.iceberg.ContentScanTask", loader), "file")
  private lazy val content = Reflection.load("org.apache.iceberg.ContentFile", loader)
  private lazy val locationOf = Reflection.method(content, "location", "path")
  private lazy val sizeOf = Reflection.method(content, "fileSizeInBytes")
  private lazy val startOf = Reflection.method(taskClass, "start")
  private lazy val lengthOf = Reflection.method(taskClass, "length")
  private lazy val recordsOf = Reflection.method(content, "recordCount")

  /** One entry a task, in the order of the tasks. What is not one data file has no path: no statistics know it. */
  lazy val files: IndexedSeq[ScanFile] = {
    val estimates = new DeletedRowEstimates(ofFiles.map(TaskDeletes.deletesOf))
    val bounds = new DeletedRowBounds
    tasks.map(task =>
      if (taskClass.isInstance(task)) dataFile(task, estimates, bounds)
      else ScanFile("", -1L, None))
  }

  /** What Iceberg counts of tasks as it plans them. */
  lazy val size: TaskTotals = {
    val bytes = sum(lengthOf)
    val deletes = ofFiles.map(TaskDeletes.deletesOf(_).length.toLong).sum
    TaskTotals(tasks.size.toLong, bytes, deletes, sum(Reflection.method(taskClass, "sizeBytes")) - bytes)
  }

  /** The paths of the data files. */
  def paths: Set[String] = tasks.flatMap(pathOf).toSet

  private def pathOf(task: AnyRef): Option[String] =
    if (taskClass.isInstance(task)) Some(locationOf.invoke(fileOf.invoke(task)).toString)
    else None

  private def ofFiles: IndexedSeq[AnyRef] = tasks.filter(taskClass.isInstance)

  private def sum(method: Method): Long =
    ofFiles.map(method.invoke(_).asInstanceOf[java.lang.Long].longValue).sum

  private def dataFile(task: AnyRef, estimates: DeletedRowEstimates, bounds: DeletedRowBounds): ScanFile = {
    val file = fileOf.invoke(task)
    val rows = recordsOf.invoke(file).asInstanceOf[java.lang.Long].longValue
    val deletes = TaskDeletes.deletesOf(task)
    val counted = TaskDeletes.countRows(deletes, rows)
    val estimate = counted.map(_.toDouble).orElse(estimates.estimate(deletes))
    val size = sizeOf.invoke(file).asInstanceOf[java.lang.Long]
    val isWhole = startOf.invoke(task) == 0L && lengthOf.invoke(task) == size
    val deleted = if (isWhole) deletedRows(counted, deletes, bounds) else DeletedRows.Unknown
    ScanFile(locationOf.invoke(file).toString, size, Some(rows), estimate, deleted = deleted)
  }

  private def deletedRows(
      counted: Option[Long],
      deletes: Array[AnyRef],
      bounds: DeletedRowBounds): DeletedRows =
    counted match {
      case Some(rows) => DeletedRows.exactly(rows)
      case None => bounds.mostDeleted(deletes).fold(DeletedRows.Unknown)(DeletedRows.atMost)
    }

  /** Those of the files of these paths, and what is not one data file. */
  def selectPaths(paths: Set[String]): IcebergTasks =
    at(tasks.indices.filter(i => pathOf(tasks(i)).forall(paths)))

  def at(places: IndexedSeq[Int]): IcebergTasks = new IcebergTasks(places.map(tasks), loader, report, live)

  /** What Iceberg's metrics say of the planning of these tasks, for the files that are left of them. */
  def remainingMetrics(left: TaskTotals): Array[CustomTaskMetric] = {
    val counted = Map(
      "resultDataFiles" -> left.files,
      "totalDataFileSize" -> left.bytes,
      "resultDeleteFiles" -> left.deletes,
      "totalDeleteFileSize" -> left.deletesBytes)
    report.map { metric =>
      val skipped = if (metric.name == "skippedDataFiles") tasks.size - left.files else 0L
      FileCount(metric.name, counted.getOrElse(metric.name, metric.value + skipped))
    }.toArray
  }

  /** Makes a scan read these tasks and no others. */
  def giveTo(scan: AnyRef): Unit =
    Reflection.call[AnyRef](scan, "resetTasks", new java.util.ArrayList[AnyRef](tasks.asJava))
}

private[scan] object IcebergTasks {

  /** What a scan is going to read. */
  def fromScan(scan: AnyRef, snapshot: Option[String], planner: ScanPlanner): IcebergTasks = {
    val known = planner.shared(scan)((snapshot, planned(scan)))
    // The scan of a table that was never written has nothing behind it that could take tasks.
    if (known._1 != snapshot || known._2.tasks.isEmpty) planned(scan)
    else {
      known._2.giveTo(scan)
      known._2
    }
  }

  private def planned(scan: AnyRef): IcebergTasks = {
    val tasks = currentTasks(scan)
    val report = Reflection.call[Array[CustomTaskMetric]](scan, "reportDriverMetrics").toSeq
    new IcebergTasks(tasks.tasks, scan.getClass.getClassLoader, report, Try(filesOf(scan)).toOption.flatten)
  }

  /** Those that a scan has now: when a query runs, Spark may leave out some. */
  def currentTasks(scan: AnyRef): IcebergTasks = {
    val tasks = Reflection.call[JavaCollection[AnyRef]](scan, "tasks").asScala.toIndexedSeq
    new IcebergTasks(tasks, scan.getClass.getClassLoader, Nil, None)
  }

  /** The snapshot that a scan reads. */
  def snapshot(scan: AnyRef): AnyRef =
    Reflection.call[AnyRef](Reflection.call[AnyRef](scan, "scan"), "snapshot")

  /** How many data files it has, by the list of its manifests, which planning has read. */
  private def filesOf(scan: AnyRef): Option[Long] = {
    val io = Reflection.call[AnyRef](Reflection.call[AnyRef](scan, "table"), "io")
    val manifests = Reflection.call[JavaList[AnyRef]](snapshot(scan), "dataManifests", io).asScala
    val counts =
      manifests.flatMap(m => Seq("addedFilesCount", "existingFilesCount").map(Reflection.call[Integer](m, _)))
    if (counts.contains(null)) None else Some(counts.map(_.longValue).sum)
  }
}
