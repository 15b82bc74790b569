package org.metastore.spark.auto

import java.util.concurrent.{ExecutorService, Executors, TimeUnit}

import scala.collection.mutable
import scala.concurrent.{Await, Promise, TimeoutException}
import scala.concurrent.duration.Duration
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession

import org.metastore.spark.analyze.{AnalyzeCommand, AnalyzeStatement}
import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{MetastoreException, VisibleText}

/**
 * Analyzes the data files that statements of this driver wrote, one table at a time, on a thread of its own: a table that is
 * written again before its turn is analyzed once. What fails costs one line in the log, and no statement.
 */
private[auto] object AutoAnalyze extends Logging {

  /** A table that waits for its turn, and who waits for it. */
  private final class Pending(val session: SparkSession, val table: String, val done: Promise[Unit])

  private val Most = 1000 // tables
  private val Pool = "metastore"
  private val pending = mutable.LinkedHashMap.empty[String, Pending]

  private lazy val worker: ExecutorService = Executors.newSingleThreadExecutor { work =>
    val thread = new Thread(work, "metastore-auto-analyze")
    thread.setDaemon(true)
    thread
  }

  /** Analyzes a table soon. Never throws. */
  def begin(session: SparkSession, table: String): Unit = submit(session, table)

  /** Analyzes a table, and returns when that is done, at most after the session's patience. Never throws. */
  def await(session: SparkSession, table: String): Unit = submit(session, table).foreach(awaitAtMost(_, timeoutOf(session)))

  private def submit(session: SparkSession, table: String): Option[Promise[Unit]] = synchronized {
    if (!pending.contains(table) && pending.size < Most) {
      pending(table) = new Pending(session, table, Promise[Unit]())
      worker.execute(() => runNext())
    }
    pending.get(table).map(_.done)
  }

  private def runNext(): Unit = next().foreach { asked =>
    try analyze(asked)
    catch {
      case NonFatal(e) => logWarning(VisibleText(s"${asked.table} was written and not analyzed: ${MetastoreException.firstLine(e)}"))
    } finally {
      SparkSession.clearActiveSession() // the thread outlives it
      asked.done.trySuccess(())
    }
  }

  private def next(): Option[Pending] = synchronized {
    val first = pending.headOption.map(_._2)
    first.foreach(asked => pending.remove(asked.table))
    first
  }

  private def analyze(asked: Pending): Unit = if (!asked.session.sparkContext.isStopped) {
    val context = asked.session.sparkContext
    SparkSession.setActiveSession(asked.session)
    context.setLocalProperty("spark.scheduler.pool", Pool)
    context.setJobDescription(s"ANALYZE of ${asked.table} after a write")
    AnalyzeCommand.analyze(asked.session, AnalyzeStatement(asked.table, None, allColumns = true, noScan = false, Map.empty))
  }

  private def timeoutOf(session: SparkSession): Long = MetastoreConf.of(session).analyzeAutoTimeoutMillis

  private def awaitAtMost(done: Promise[Unit], millis: Long): Unit =
    try Await.ready(done.future, Duration(math.max(millis, 0), TimeUnit.MILLISECONDS))
    catch {
      case _: TimeoutException => ()
      case _: InterruptedException => Thread.currentThread.interrupt()
    }
}
