package org.metastore.spark.python

import java.util.{Collections, WeakHashMap}
import java.util.concurrent.Semaphore

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.SparkSession

import org.metastore.spark.conf.PythonInterpreter
import org.metastore.spark.reason.MetastoreException

/**
 * Python processes of this driver. Statements run side by side, each in a process of its own, which the next
 * statement takes over. Interactive statements do not wait for statements in the background.
 */
object AttachedPython {
  private val MostInteractive = 8

  /** The most statements that run in the background at a time. */
  val MostInBackground: Int = 4

  private val interactive = new PythonPool(MostInteractive)
  private val background = new PythonPool(MostInBackground)

  Runtime.getRuntime.addShutdownHook(new Thread(
    () => Seq(interactive, background).foreach(_.stop()),
    "metastore-python-stop"))

  /** Runs one statement in Python; an error of Python is raised as a MetastoreException. */
  def run(session: SparkSession, statement: PythonStatement): JsonNode = {
    val pool = if (statement.isInteractive) interactive else background
    pool.run(session, statement)
  }
}

/**
 * Python processes that each run one statement at a time.
 *
 * @param most the most statements that run at a time; others wait, in the order in which they came
 */
private final class PythonPool(most: Int) {
  private val turns = new Semaphore(most, true)
  private val processes = mutable.Set.empty[PythonProcess]
  private val idle = mutable.Set.empty[PythonProcess]
  private val followed = Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean])

  def stop(): Unit = synchronized(processes.toSeq).foreach(_.stop())

  def run(session: SparkSession, statement: PythonStatement): JsonNode = {
    turns.acquire()
    val answer =
      try {
        val process = take(session, statement)
        try process.ask(session, statement)
        finally giveBack(process)
      } catch {
        case e: PythonUnavailable =>
          throw MetastoreException.analyzeFailed(statement.table, e.getMessage, Some(e))
        case e @ (_: PythonLost | _: PythonSilent) =>
          throw MetastoreException.analyzeFailed(statement.table, e.getMessage, Some(e))
      } finally turns.release()
    val json = PythonStatement.mapper.readTree(answer)
    if (json.has("report")) json.get("report")
    else throw failed(statement, json.path("error"))
  }

  /** An idle process, or a new one. */
  private def take(session: SparkSession, statement: PythonStatement): PythonProcess = {
    val context = session.sparkContext
    val candidates = PythonInterpreter.candidates(context)
    takeIdle(context, candidates).getOrElse {
      if (ProgressConsole.isFor(statement, context)) ProgressConsole.print("ANALYZE: starting Python\n")
      val process = DriverPython.start(context, candidates)
      synchronized {
        processes += process
        follow(context)
      }
      process
    }
  }

  private def takeIdle(
      context: SparkContext,
      candidates: Seq[PythonInterpreter]): Option[PythonProcess] = synchronized {
    val (usable, unusable) = idle.partition(process =>
      process.isAlive && candidates.contains(process.interpreter) && (process.context eq context))
    unusable.foreach(remove)
    val taken = usable.headOption
    idle --= taken
    taken
  }

  /** Makes one process idle for the next statement, and ends others: they would only take memory. */
  private def giveBack(process: PythonProcess): Unit = synchronized {
    if (process.isAlive && idle.isEmpty) idle += process
    else remove(process)
  }

  private def remove(process: PythonProcess): Unit = {
    process.stop()
    processes -= process
    idle -= process
  }

  /** Ends the processes of a context with it. */
  private def follow(context: SparkContext): Unit = if (followed.add(context)) {
    context.addSparkListener(new SparkListener {
      override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
        PythonPool.this.synchronized(processes.filter(_.context eq context).toSeq).foreach(_.stop())
    })
  }

  private def failed(statement: PythonStatement, error: JsonNode): MetastoreException = {
    val code = error.path("code").asText
    new MetastoreException(
      code,
      error.path("message").asText.stripPrefix(s"[$code] "),
      Map("table" -> statement.table))
  }
}

private object DriverPython {

  /**
   * Starts a process of the first Python that has the package. [[PythonUnavailable]] names all that were
   * tried.
   */
  def start(context: SparkContext, candidates: Seq[PythonInterpreter]): PythonProcess = {
    val problems = mutable.ListBuffer.empty[PythonUnavailable]
    val remaining = candidates.iterator
    var process = Option.empty[PythonProcess]
    while (process.isEmpty && remaining.hasNext) {
      try process = Some(new PythonProcess(remaining.next(), context))
      catch { case problem: PythonUnavailable => problems += problem }
    }
    process.getOrElse(throw allUnavailable(problems.toList))
  }

  private def allUnavailable(problems: Seq[PythonUnavailable]): PythonUnavailable = new PythonUnavailable(
    s"${problems.map(_.getMessage).mkString("; ")}. Start Spark with spark.metastore.python set to an interpreter of " +
      "the driver's host with the package, after: pip install pyspark-metastore",
    problems.last)
}
