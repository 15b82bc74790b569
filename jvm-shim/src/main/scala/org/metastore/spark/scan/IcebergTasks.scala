package org.metastore.spark.scan

import java.lang.reflect.Method
import java.util.{Collection => JavaCollection, List => JavaList}

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.spark.sql.connector.metric.CustomTaskMetric

import org.metastore.spark.pruning.DeletedRows
import org.metastore.spark.tables.{DeletedRowBounds, DeletedRowEstimates, Reflection, TaskDeletes}

/** The data files of tasks and their bytes, the delete files and theirs. */
private[scan] final case class TaskTotals(files: Long, bytes: Long, deletes: Long, deletesBytes: Long)

/** The tasks of an Iceberg scan: the data files that it is going to read. Equal scans share them: they refer to no scan. */
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

  /** A file for each task, in their order; without a path where a task is not one data file: no statistics know it. */
  lazy val files: IndexedSeq[ScanFile] = {
    val estimates = new DeletedRowEstimates(fileTasks.map(TaskDeletes.deletesOf))
    val bounds = new DeletedRowBounds
    tasks.map(task =>
      if (taskClass.isInstance(task)) dataFile(task, estimates, bounds)
      else ScanFile("", -1L, None))
  }

  /** The totals that Iceberg reports of the tasks that it plans. */
  lazy val size: TaskTotals = {
    val bytes = sum(lengthOf)
    val deletes = fileTasks.map(TaskDeletes.deletesOf(_).length.toLong).sum
    TaskTotals(tasks.size.toLong, bytes, deletes, sum(Reflection.method(taskClass, "sizeBytes")) - bytes)
  }

  /** The paths of the data files. */
  def paths: Set[String] = tasks.flatMap(pathOf).toSet

  private def pathOf(task: AnyRef): Option[String] =
    if (taskClass.isInstance(task)) Some(locationOf.invoke(fileOf.invoke(task)).toString)
    else None

  private def fileTasks: IndexedSeq[AnyRef] = tasks.filter(taskClass.isInstance)

  private def sum(method: Method): Long =
    fileTasks.map(method.invoke(_).asInstanceOf[java.lang.Long].longValue).sum

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

  /** The tasks of the files of these paths, and those that are not of one data file. */
  def selectPaths(paths: Set[String]): IcebergTasks =
    at(tasks.indices.filter(i => pathOf(tasks(i)).forall(paths)))

  def at(places: IndexedSeq[Int]): IcebergTasks = new IcebergTasks(places.map(tasks), loader, report, live)

  /** Iceberg's metrics on the planning of these tasks, for those that are left. */
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

  /** The tasks of a scan; equal scans of one snapshot share them. */
  def fromScan(scan: AnyRef, snapshot: Option[String], planner: ScanPlanner): IcebergTasks = {
    val (sharedSnapshot, shared) = planner.shared(scan)((snapshot, planned(scan)))
    // The scan of a table that was never written has nothing behind it that could take tasks.
    if (sharedSnapshot != snapshot || shared.tasks.isEmpty) planned(scan)
    else {
      shared.giveTo(scan)
      shared
    }
  }

  private def planned(scan: AnyRef): IcebergTasks = {
    val tasks = currentTasks(scan)
    val report = Reflection.call[Array[CustomTaskMetric]](scan, "reportDriverMetrics").toSeq
    new IcebergTasks(tasks.tasks, scan.getClass.getClassLoader, report, Try(filesOf(scan)).toOption.flatten)
  }

  /** The tasks that a scan has now: when a query runs, Spark may leave out some. */
  def currentTasks(scan: AnyRef): IcebergTasks = {
    val tasks = Reflection.call[JavaCollection[AnyRef]](scan, "tasks").asScala.toIndexedSeq
    new IcebergTasks(tasks, scan.getClass.getClassLoader, Nil, None)
  }

  /** The snapshot that a scan reads. */
  def snapshot(scan: AnyRef): AnyRef =
    Reflection.call[AnyRef](Reflection.call[AnyRef](scan, "scan"), "snapshot")

  /** The number of its data files, by the list of its manifests, which planning has read. */
  private def filesOf(scan: AnyRef): Option[Long] = {
    val io = Reflection.call[AnyRef](Reflection.call[AnyRef](scan, "table"), "io")
    val manifests = Reflection.call[JavaList[AnyRef]](snapshot(scan), "dataManifests", io).asScala
    val counts = for {
      manifest <- manifests
      count <- Seq("addedFilesCount", "existingFilesCount")
    } yield Reflection.call[Integer](manifest, count)
    if (counts.contains(null)) None else Some(counts.map(_.longValue).sum)
  }
}
