package org.metastore.spark.scan

import java.lang.reflect.Method
import java.util.{Collection => JavaCollection, List => JavaList}

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.spark.sql.connector.metric.CustomTaskMetric

import org.metastore.spark.pruning.DeletedRows
import org.metastore.spark.tables.{DeletedRowBounds, DeletedRowEstimates, Reflection, TaskDeletes}

/** The numbers of data files and delete files of tasks, and their bytes. */
private[scan] final case class TaskTotals(files: Long, bytes: Long, deletes: Long, deletesBytes: Long)

/** The tasks of an Iceberg scan: the data files to read. Equal scans share them, so they refer to no scan. */
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

  /** The file of each task. A task that is not one data file has a file without path and statistics. */
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
    val exact = TaskDeletes.countRows(deletes, rows)
    val estimate = exact.map(_.toDouble).orElse(estimates.estimate(deletes))
    val size = sizeOf.invoke(file).asInstanceOf[java.lang.Long]
    val isWhole = startOf.invoke(task) == 0L && lengthOf.invoke(task) == size
    val deleted = if (isWhole) deletedRows(exact, deletes, bounds) else DeletedRows.Unknown
    ScanFile(locationOf.invoke(file).toString, size, Some(rows), estimate, deleted = deleted)
  }

  private def deletedRows(
      exact: Option[Long],
      deletes: Array[AnyRef],
      bounds: DeletedRowBounds): DeletedRows =
    exact match {
      case Some(rows) => DeletedRows.exactly(rows)
      case None => bounds.mostDeleted(deletes).fold(DeletedRows.Unknown)(DeletedRows.atMost)
    }

  /** Selects the tasks of these files, and tasks that are not one data file. */
  def selectPaths(paths: Set[String]): IcebergTasks =
    at(tasks.indices.filter(i => pathOf(tasks(i)).forall(paths)))

  def at(positions: IndexedSeq[Int]): IcebergTasks =
    new IcebergTasks(positions.map(tasks), loader, report, live)

  /** Iceberg's metrics on planning these tasks, corrected for the remaining ones. */
  def remainingMetrics(remaining: TaskTotals): Array[CustomTaskMetric] = {
    val totals = Map(
      "resultDataFiles" -> remaining.files,
      "totalDataFileSize" -> remaining.bytes,
      "resultDeleteFiles" -> remaining.deletes,
      "totalDeleteFileSize" -> remaining.deletesBytes)
    report.map { metric =>
      val skipped = if (metric.name == "skippedDataFiles") tasks.size - remaining.files else 0L
      FileCount(metric.name, totals.getOrElse(metric.name, metric.value + skipped))
    }.toArray
  }

  /** Makes a scan read exactly these tasks. */
  def giveTo(scan: AnyRef): Unit =
    Reflection.call[AnyRef](scan, "resetTasks", new java.util.ArrayList[AnyRef](tasks.asJava))
}

private[scan] object IcebergTasks {

  /** The tasks of a scan; equal scans of one snapshot share them. */
  def fromScan(scan: AnyRef, snapshot: Option[String], planner: ScanPlanner): IcebergTasks = {
    val (sharedSnapshot, shared) = planner.shared(scan)((snapshot, planned(scan)))
    // The scan of a table that was never written cannot get tasks.
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

  /** The tasks that a scan has now: Spark may remove some when a query runs. */
  def currentTasks(scan: AnyRef): IcebergTasks = {
    val tasks = Reflection.call[JavaCollection[AnyRef]](scan, "tasks").asScala.toIndexedSeq
    new IcebergTasks(tasks, scan.getClass.getClassLoader, Nil, None)
  }

  /** The snapshot that a scan reads; a table that was never written has none. */
  def snapshot(scan: AnyRef): Option[AnyRef] =
    Option(Reflection.call[AnyRef](scan, "scan"))
      .flatMap(planned => Option(Reflection.call[AnyRef](planned, "snapshot")))

  /** Counts the scan's data files by the manifest list, which planning has read. */
  private def filesOf(scan: AnyRef): Option[Long] = {
    val io = Reflection.call[AnyRef](Reflection.call[AnyRef](scan, "table"), "io")
    val counts = for {
      current <- snapshot(scan).toSeq
      manifest <- Reflection.call[JavaList[AnyRef]](current, "dataManifests", io).asScala
      count <- Seq("addedFilesCount", "existingFilesCount")
    } yield Reflection.call[Integer](manifest, count)
    if (counts.contains(null)) None else Some(counts.map(_.longValue).sum)
  }
}
