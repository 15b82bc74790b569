package org.metastore.spark.python

import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.spark.scheduler.{
  SparkListener, SparkListenerJobEnd, SparkListenerJobStart, SparkListenerTaskEnd, SparkListenerTaskStart
}

/**
 * The time since a statement's last sign of life: a task of its jobs started or ended, its process computed,
 * or a job waits for executors, which is not the fault of storage.
 *
 * @param tag     the tag of its jobs
 * @param process the Python that runs it
 */
private[python] final class StatementActivity(tag: String, process: ProcessHandle) extends SparkListener {
  private var lastSign = System.nanoTime()
  private var cpuNanos = 0L
  private var lookedAt = lastSign
  private val jobs = mutable.Map.empty[Int, Set[Int]] // to their stages
  private val tasks = mutable.Set.empty[Long]

  /** The time since the last sign. */
  def silentMillis: Long = synchronized {
    if (computes() || (jobs.nonEmpty && tasks.isEmpty)) hear()
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - lastSign)
  }

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized {
    if (Option(start.properties).exists(_.getProperty(StatementActivity.Tags, "").contains(tag))) {
      jobs(start.jobId) = start.stageIds.toSet
      hear()
    }
  }

  override def onJobEnd(end: SparkListenerJobEnd): Unit = synchronized {
    if (jobs.remove(end.jobId).isDefined) hear()
    if (jobs.isEmpty) tasks.clear()
  }

  override def onTaskStart(start: SparkListenerTaskStart): Unit = synchronized {
    if (isOurs(start.stageId)) {
      tasks += start.taskInfo.taskId
      hear()
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
    if (tasks.remove(end.taskInfo.taskId)) hear()
  }

  private def isOurs(stage: Int): Boolean = jobs.values.exists(_.contains(stage))

  private def hear(): Unit = lastSign = System.nanoTime()

  /**
   * Whether the process used a share of a core since the last check. A process that waits uses almost
   * nothing.
   */
  private def computes(): Boolean = {
    val now = System.nanoTime()
    if (now - lookedAt < StatementActivity.LookNanos) false
    else {
      val total = process.info.totalCpuDuration
      val nanos = if (total.isPresent) total.get.toNanos else 0L
      val isBusy = nanos - cpuNanos > (now - lookedAt) / StatementActivity.Share
      cpuNanos = nanos
      lookedAt = now
      isBusy
    }
  }
}

private[python] object StatementActivity {
  private val Tags = "spark.job.tags"
  private val LookNanos = TimeUnit.SECONDS.toNanos(1)
  private val Share = 20L // of a core: the clock of processes ticks in hundredths of a second
}
