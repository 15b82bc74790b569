package org.metastore.spark.analyze

import java.util.{Collections, WeakHashMap}
import java.util.concurrent.locks.ReentrantLock

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.SparkSession

import org.metastore.spark.sql.MetastoreException

/** The one attached Python process of this driver: started by the first statement, restarted when it is gone. */
object AttachedPython extends Logging {
  private val lock = new ReentrantLock()
  @volatile private var process: Option[PythonProcess] = None
  private val followed = Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean])

  Runtime.getRuntime.addShutdownHook(new Thread(() => stop(), "metastore-python-stop"))

  /** Ends the process; the next statement starts another one. */
  def stop(): Unit = {
    process.foreach(_.stop())
    process = None
  }

  /**
   * Runs one ANALYZE in Python, after those that came before it.
   *
   * @return the report
   * @throws MetastoreException what Python said, in one line
   */
  def run(session: SparkSession, statement: AnalyzeStatement): JsonNode = {
    lock.lockInterruptibly()
    val answer = try of(session).ask(session, statement) catch {
      case e: PythonUnavailable => throw unavailable(session.sparkContext, statement, e)
      case e: PythonLost => throw MetastoreException.analyzeFailed(statement.table, e.getMessage, Some(e))
    } finally lock.unlock()
    val json = AnalyzeStatement.mapper.readTree(answer)
    if (json.has("report")) json.get("report") else throw failed(statement, json.path("error"))
  }

  private def of(session: SparkSession): PythonProcess = {
    val wanted = PythonInterpreter.of(session.sparkContext)
    val (usable, gone) = process.partition(p => p.isAlive && p.interpreter == wanted && (p.context eq session.sparkContext))
    gone.foreach(_.stop())
    process = None
    if (usable.isEmpty && ProgressConsole.isThere(session.sparkContext)) ProgressConsole.print("ANALYZE: starting Python\n")
    process = Some(usable.headOption.getOrElse(new PythonProcess(wanted, session.sparkContext)))
    follow(session.sparkContext)
    process.get
  }

  /**
   * The process ends with its context. The listener stays for good: to remove one takes a lock and may wait for the thread
   * that is calling it, and at the end of a JVM its hooks and that thread would wait for each other.
   */
  private def follow(context: SparkContext): Unit = if (followed.add(context)) {
    context.addSparkListener(new SparkListener {
      override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = process.filter(_.context eq context).foreach(_.stop())
    })
  }

  private def failed(statement: AnalyzeStatement, error: JsonNode): MetastoreException = {
    val code = error.path("code").asText
    new MetastoreException(code, error.path("message").asText.stripPrefix(s"[$code] "), Map("table" -> statement.table))
  }

  private def unavailable(context: SparkContext, statement: AnalyzeStatement, cause: PythonUnavailable): MetastoreException = {
    val python = PythonInterpreter.of(context).command
    MetastoreException.analyzeFailed(statement.table, s"${cause.getMessage}. Start Spark with spark.metastore.python set to an " +
      s"interpreter of the driver's host with the package (now it is $python), after: pip install pyspark-metastore", Some(cause))
  }
}
