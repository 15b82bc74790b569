package org.metastore.spark.auto

import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import scala.collection.mutable
import scala.concurrent.{Await, Promise, TimeoutException}
import scala.concurrent.duration.Duration

import org.apache.hadoop.util.ShutdownHookManager

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession

import org.metastore.spark.analyze.{AnalyzeCommand, AnalyzeStatement}
import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.python.AttachedPython
import org.metastore.spark.reason.{Attempt, MetastoreException, VisibleText}

/**
 * Analyzes the data files that statements of this driver wrote, one table after the other, on threads of its
 * own.
 *
 * A table that is written again before its turn is analyzed once. If a table takes longer than its turn, for
 * example because storage hangs, the next one begins beside it. A failure is a line in the log, and fails no
 * statement. In the background, the footers of all tables are read before the data of any: footers take
 * little time and let most queries skip files.
 */
private[auto] object AutoAnalyze extends Logging {

  /** A table that waits for its turn; `done` completes when it is analyzed, or never will be. */
  private final class Pending(
      val session: SparkSession,
      val table: String,
      val footers: Boolean,
      val isWaitedFor: Boolean) {
    val done: Promise[Unit] = Promise[Unit]()
    var pause = 1L // seconds
    var rests = false
    def key: (String, Boolean) = (table, footers)
  }

  private val Most = 1000 // tables
  private val Pool = "metastore"
  private val LongestPause = 32L // seconds
  private val TurnSeconds = 10L
  private val running = mutable.Map.empty[String, Long] // tables, to the nanoseconds of their start
  private val pending = mutable.LinkedHashMap.empty[(String, Boolean), Pending]

  // New threads must not inherit the job group and tags of the statement that happens to be the first.
  private lazy val workers: ScheduledExecutorService = Executors.newScheduledThreadPool(
    AttachedPython.MostInBackground,
    work => {
      val thread = new Thread(null, work, "metastore-auto-analyze", 0L, false)
      thread.setDaemon(true)
      thread
    })

  /**
   * Analyzes a table soon; with `waits` returns after that, or after the session's time limit. Never throws.
   */
  def follow(session: SparkSession, table: String, waits: Boolean): Unit = {
    val done = submit(new Pending(session, table, footers = !waits, waits))
    if (waits) done.foreach(awaitAtMost(_, MetastoreConf.fromSession(session).analyzeAutoTimeoutMillis))
  }

  private def submit(request: Pending): Option[Promise[Unit]] = synchronized {
    pending.get(request.key) match {
      // A request of a stopped Spark is replaced.
      case Some(waiting) if !waiting.session.sparkContext.isStopped => Some(waiting.done)
      case _ if pending.size < Most =>
        pending(request.key) = request
        workers.execute(() => runNext())
        Some(request.done)
      case _ =>
        val reason = s"$Most tables wait for it. Run ANALYZE TABLE, or write it again"
        logWarning(VisibleText(s"${request.table} was written and not analyzed: $reason"))
        None
    }
  }

  private def runNext(): Unit = next().foreach { request =>
    try Attempt.recover(if (analyze(request)) finish(request) else tryLater(request)) { failure =>
        logFailure(request, failure)
        request.done.trySuccess(())
      }
    finally {
      SparkSession.clearActiveSession() // the thread outlives it
      release(request.table)
    }
  }

  private def logFailure(request: Pending, failure: Throwable): Unit = {
    val problem = s"${request.table} was written and not analyzed"
    if (hasEnded(request))
      logInfo(VisibleText(s"$problem: the driver ended; the next write or ANALYZE makes up for it"))
    else logWarning(VisibleText(s"$problem: ${MetastoreException.firstLine(failure)}"))
  }

  // A table that was written while it was analyzed has its turn now.
  private def release(table: String): Unit = {
    synchronized(running.remove(table))
    workers.execute(() => runNext())
  }

  private def hasEnded(request: Pending): Boolean =
    request.session.sparkContext.isStopped || ShutdownHookManager.get.isShutdownInProgress

  private def next(): Option[Pending] = synchronized {
    val now = System.nanoTime()
    val isFree = running.values.forall(started => now - started >= TimeUnit.SECONDS.toNanos(TurnSeconds))
    if (!isFree) None
    else {
      val ready = pending.values.filter(request => !request.rests && !running.contains(request.table))
      val first = ready.find(_.footers).orElse(ready.headOption)
      first.foreach { request =>
        pending.remove(request.key)
        running(request.table) = now
        workers.schedule((() => runNext()): Runnable, TurnSeconds, TimeUnit.SECONDS)
      }
      first
    }
  }

  private def finish(request: Pending): Unit = {
    request.done.trySuccess(())
    if (request.footers)
      submit(new Pending(request.session, request.table, footers = false, request.isWaitedFor))
  }

  // Another driver analyzes the table: the remaining files wait, with those that are written until then.
  private def tryLater(request: Pending): Unit = synchronized {
    pending.get(request.key) match {
      case Some(later) => request.done.completeWith(later.done.future)
      case None =>
        request.rests = true
        pending(request.key) = request
        workers.schedule((() => wake(request)): Runnable, request.pause, TimeUnit.SECONDS)
        request.pause = math.min(2 * request.pause, LongestPause)
    }
  }

  private def wake(request: Pending): Unit = {
    synchronized { request.rests = false }
    runNext()
  }

  /** Analyzes a table; returns false if another driver is analyzing it. */
  private def analyze(request: Pending): Boolean = {
    val context = request.session.sparkContext
    context.isStopped || {
      SparkSession.setActiveSession(request.session)
      Thread.currentThread.setContextClassLoader(request.session.sharedState.jarClassLoader)
      context.setLocalProperty("spark.scheduler.pool", Pool)
      context.setJobDescription(s"ANALYZE of ${request.table} after a write")
      val statement = AnalyzeStatement(
        request.table,
        None,
        allColumns = !request.footers,
        noScan = false,
        Map.empty,
        isWaitedFor = request.isWaitedFor)
      AnalyzeCommand.analyzeInTurn(request.session, statement)
    }
  }

  private def awaitAtMost(done: Promise[Unit], millis: Long): Unit =
    try Await.ready(done.future, Duration(math.max(millis, 0), TimeUnit.MILLISECONDS))
    catch {
      case _: TimeoutException => ()
      case _: InterruptedException => Thread.currentThread.interrupt()
    }
}
