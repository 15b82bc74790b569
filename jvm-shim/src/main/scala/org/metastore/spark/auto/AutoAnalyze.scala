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
import org.metastore.spark.reason.{MetastoreException, Recoverable, VisibleText}

/**
 * Analyzes the data files that statements of this driver wrote, one table after the other, on threads of its own. A table that is
 * written again before its turn is analyzed once. One that takes longer than its turn, as where storage hangs, goes on beside the
 * next. What fails costs one line in the log, and no statement. Where nobody waits, the footers of all tables come before the data
 * of any, for they take little time and let most queries skip files.
 */
private[auto] object AutoAnalyze extends Logging {

  /** A table that waits for its turn, and who waits for it. */
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

  // Job group, tags and what else Spark hands on to new threads are of the statement that happens to be the first.
  private lazy val workers: ScheduledExecutorService = Executors.newScheduledThreadPool(
    AttachedPython.MostInBackground,
    work => {
      val thread = new Thread(null, work, "metastore-auto-analyze", 0L, false)
      thread.setDaemon(true)
      thread
    })

  /** Analyzes a table soon, or returns when that is done, at most after the session's patience. Never throws. */
  def follow(session: SparkSession, table: String, waits: Boolean): Unit = {
    val done = submit(new Pending(session, table, footers = !waits, waits))
    if (waits) done.foreach(awaitAtMost(_, MetastoreConf.fromSession(session).analyzeAutoTimeoutMillis))
  }

  // What waits for a Spark that was stopped is not waited for.
  private def submit(asked: Pending): Option[Promise[Unit]] = synchronized {
    val waiting = pending.get(asked.key).filterNot(_.session.sparkContext.isStopped)
    if (waiting.isDefined) waiting.map(_.done)
    else if (pending.size < Most) {
      pending(asked.key) = asked
      workers.execute(() => runNext())
      Some(asked.done)
    } else {
      logWarning(
        VisibleText(s"${asked.table} was written and not analyzed: $Most tables wait for it. Run ANALYZE TABLE, or write it again"))
      None
    }
  }

  private def runNext(): Unit = next().foreach { asked =>
    try {
      if (analyze(asked)) finish(asked) else tryLater(asked)
    } catch {
      case Recoverable(e) =>
        if (hasEnded(asked)) logInfo(VisibleText(
          s"${asked.table} was written and not analyzed: the driver ended; the next write or ANALYZE makes up for it"))
        else logWarning(
          VisibleText(s"${asked.table} was written and not analyzed: ${MetastoreException.firstLine(e)}"))
        asked.done.trySuccess(())
    } finally {
      SparkSession.clearActiveSession() // the thread outlives it
      release(asked.table)
    }
  }

  /** A table that was written while it was analyzed has its turn now. */
  private def release(table: String): Unit = {
    synchronized(running.remove(table))
    workers.execute(() => runNext())
  }

  private def hasEnded(asked: Pending): Boolean =
    asked.session.sparkContext.isStopped || ShutdownHookManager.get.isShutdownInProgress

  private def next(): Option[Pending] = synchronized {
    val now = System.nanoTime()
    val isFree = running.values.forall(started => now - started >= TimeUnit.SECONDS.toNanos(TurnSeconds))
    val ready = pending.values.filter(asked => isFree && !asked.rests && !running.contains(asked.table))
    val first = ready.find(_.footers).orElse(ready.headOption)
    first.foreach { asked =>
      pending.remove(asked.key)
      running(asked.table) = now
      workers.schedule((() => runNext()): Runnable, TurnSeconds, TimeUnit.SECONDS)
    }
    first
  }

  private def finish(asked: Pending): Unit = {
    asked.done.trySuccess(())
    if (asked.footers) submit(new Pending(asked.session, asked.table, footers = false, asked.isWaitedFor))
  }

  /** Another driver is at the same: what it leaves is done after it, with all that is written until then. */
  private def tryLater(asked: Pending): Unit = synchronized {
    pending.get(asked.key) match {
      case Some(later) => asked.done.completeWith(later.done.future)
      case None =>
        asked.rests = true
        pending(asked.key) = asked
        workers.schedule((() => wake(asked)): Runnable, asked.pause, TimeUnit.SECONDS)
        asked.pause = math.min(2 * asked.pause, LongestPause)
    }
  }

  private def wake(asked: Pending): Unit = {
    synchronized { asked.rests = false }
    runNext()
  }

  /** Whether it is done: nobody else was at it. */
  private def analyze(asked: Pending): Boolean = {
    val context = asked.session.sparkContext
    context.isStopped || {
      SparkSession.setActiveSession(asked.session)
      Thread.currentThread.setContextClassLoader(asked.session.sharedState.jarClassLoader)
      context.setLocalProperty("spark.scheduler.pool", Pool)
      context.setJobDescription(s"ANALYZE of ${asked.table} after a write")
      val statement = AnalyzeStatement(
        asked.table,
        None,
        allColumns = !asked.footers,
        noScan = false,
        Map.empty,
        isWaitedFor = asked.isWaitedFor)
      AnalyzeCommand.analyzeInTurn(asked.session, statement)
    }
  }

  private def awaitAtMost(done: Promise[Unit], millis: Long): Unit =
    try Await.ready(done.future, Duration(math.max(millis, 0), TimeUnit.MILLISECONDS))
    catch {
      case _: TimeoutException => ()
      case _: InterruptedException => Thread.currentThread.interrupt()
    }
}
