package org.metastore.spark.python

import java.io.{BufferedReader, InputStreamReader, IOException, OutputStreamWriter, PrintWriter}
import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom
import java.util.{Base64, Map => JavaMap, UUID}
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.collection.JavaConverters._
import scala.concurrent.{Await, Promise, TimeoutException}
import scala.concurrent.duration.Duration
import scala.util.Try

import py4j.ClientServer

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.metastore.LocalProperties
import org.apache.spark.sql.SparkSession

import org.metastore.spark.conf.{MetastoreConf, PythonInterpreter}
import org.metastore.spark.reason.VisibleText

/**
 * One Python process attached to this JVM. It gets statements on its standard input, and uses the session of
 * each over py4j, on the loopback address, with a token that only its environment has. It serves one
 * statement at a time: [[AttachedPython]] has several processes.
 *
 * @throws PythonUnavailable if it cannot be started or lacks a package
 */
final class PythonProcess(val interpreter: PythonInterpreter, val context: SparkContext) extends Logging {
  private val ready = new CountDownLatch(1)
  private val entry = new PythonEntry(ready)
  private val secret = PythonProcess.newSecret()
  private val gateway = PythonProcess.gateway(entry, secret)
  private val lastOutput = mutable.Queue.empty[String]
  @volatile private var stopped = false
  private val process = start()
  private val requests = new PrintWriter(new OutputStreamWriter(process.getOutputStream, UTF_8), true)
  listen()
  awaitReady()

  def isAlive: Boolean = process.isAlive && !context.isStopped

  /**
   * Hands a statement over and waits for the answer, or [[PythonLost]]. An interrupt of the thread, and a
   * silence beyond `spark.metastore.analyze.timeout` ([[PythonSilent]]), end the process and its jobs.
   */
  def ask(session: SparkSession, statement: PythonStatement): String = {
    val key = UUID.randomUUID().toString
    val tag = s"metastore-analyze-$key"
    val answer = Promise[String]()
    val activity = new StatementActivity(tag, process.toHandle)
    context.addJobTag(tag)
    context.addSparkListener(activity)
    try {
      entry.lend(key, session, LocalProperties.copy(context), answer, activity)
      requests.println(s"$key ${statement.json(ProgressConsole.isFor(statement, context))}")
      await(answer, activity, MetastoreConf.fromSession(session).analyzeTimeoutMillis)
    } catch {
      case e @ (_: InterruptedException | _: PythonSilent) =>
        stop()
        context.cancelJobsWithTag(tag)
        throw e
    } finally {
      entry.takeBack(key)
      context.removeSparkListener(activity)
      context.removeJobTag(tag)
    }
  }

  @tailrec
  private def await(answer: Promise[String], activity: StatementActivity, limitMillis: Long): String = {
    val result = within(answer, PythonProcess.PollMillis)
    if (result.isDefined) result.get
    else if (!process.isAlive) within(answer, PythonProcess.PollMillis).getOrElse(throw deathCause())
    else if (activity.silentMillis > limitMillis) throw new PythonSilent(limitMillis)
    else await(answer, activity, limitMillis)
  }

  private def within(answer: Promise[String], millis: Long): Option[String] =
    try Some(Await.result(answer.future, Duration(millis, TimeUnit.MILLISECONDS)))
    catch { case _: TimeoutException => None }

  /** Ends the process and its gateway in this JVM. */
  def stop(): Unit = {
    stopped = true
    process.destroyForcibly()
    entry.interrupt()
    gateway.shutdown()
  }

  private def start(): Process = {
    val builder = new ProcessBuilder(interpreter.command, "-c", PythonProcess.Program)
    builder.environment.putAll(PythonInterpreter.environment(
      interpreter,
      gateway.getJavaServer.getListeningPort,
      secret).asJava)
    for (name <- PythonInterpreter.variablesToUnset) builder.environment.remove(name)
    builder.redirectErrorStream(true)
    try builder.start()
    catch {
      case e: IOException =>
        gateway.shutdown()
        throw new PythonUnavailable(s"the interpreter ${interpreter.command} cannot be started", e)
    }
  }

  /** Logs the output of the process, and remembers the last lines for the message about its death. */
  private def listen(): Unit = PythonProcess.daemon("metastore-python-output") {
    val lines = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
    for (line <- Iterator.continually(lines.readLine()).takeWhile(_ != null).map(VisibleText(_))) {
      logInfo(s"metastore.spark.attached_process: $line")
      lastOutput.synchronized {
        lastOutput.enqueue(line)
        if (lastOutput.length > PythonProcess.MostLines) lastOutput.dequeue()
      }
    }
  }

  private def awaitReady(): Unit = {
    val deadline = System.nanoTime + PythonProcess.StartLimit.toNanos
    var isReady = false
    try {
      while (!isReady) {
        isReady = ready.await(PythonProcess.PollMillis, TimeUnit.MILLISECONDS)
        if (!isReady && !process.isAlive) throw deathCause()
        if (!isReady && System.nanoTime > deadline) {
          throw PythonLost.ended(
            s"did not attach within ${PythonProcess.StartLimit.toSeconds} s: ${interpreter.command}")
        }
      }
    } finally if (!isReady) stop()
  }

  private def deathCause(): Exception = {
    TimeUnit.MILLISECONDS.sleep(PythonProcess.PollMillis) // its last words may still be on their way
    val lines = lastOutput.synchronized(lastOutput.toList).map(_.trim).filter(_.nonEmpty)
    val missing = lines.flatMap(PythonProcess.Missing.findFirstMatchIn(_))
    val lastLine = lines.lastOption.fold("")(" after: " + _)
    val ended = s"${interpreter.command} ended with ${process.exitValue}$lastLine"
    if (stopped) new PythonLost("its Spark was stopped meanwhile")
    else if (PythonProcess.isSignal(process.exitValue)) PythonLost.killed(process.exitValue)
    else if (missing.nonEmpty)
      new PythonUnavailable(s"${interpreter.command} has no package ${missing.last.group(1)}")
    else if (ready.getCount == 0) PythonLost.ended(ended)
    else new PythonUnavailable(s"the Python process $ended")
  }
}

object PythonProcess {

  /**
   * Runs the module `metastore.spark.attached_process`. Nothing is imported from the working folder, where
   * anybody may have put a module.
   */
  private val Program =
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; " +
      "runpy.run_module('metastore.spark.attached_process', run_name='__main__')"

  private val StartLimit = Duration(5, TimeUnit.MINUTES)
  private val MostLines = 50
  private val PollMillis = 100L
  private val Missing = "No module named '?([A-Za-z0-9_]+)".r
  private val SecretBytes = 32

  private[python] val SignalsFrom = 128 // as shells, Java adds the signal that killed a process to it
  private val LastSignal = 64

  private def isSignal(exit: Int): Boolean = exit > SignalsFrom && exit <= SignalsFrom + LastSignal

  /**
   * Builds the gateway in a daemon thread: py4j's threads inherit that, and then do not stop the JVM from
   * ending.
   */
  private def gateway(entry: PythonEntry, secret: String): ClientServer = {
    val built = Promise[ClientServer]()
    daemon("metastore-python-gateway")(built.complete(Try {
      val server = new ClientServer.ClientServerBuilder(entry).authToken(secret)
        .javaPort(0).javaAddress(InetAddress.getLoopbackAddress).build()
      server.startServer()
      server
    }))
    Await.result(built.future, Duration.Inf)
  }

  private def daemon(name: String)(body: => Unit): Unit = {
    val thread = new Thread(() => body, name)
    thread.setDaemon(true)
    thread.start()
  }

  private def newSecret(): String = {
    val bytes = new Array[Byte](SecretBytes)
    new SecureRandom().nextBytes(bytes)
    Base64.getEncoder.encodeToString(bytes)
  }
}

/** A Python, or each of them, cannot be started or lacks the package. */
final class PythonUnavailable(message: String, cause: Throwable = None.orNull)
  extends Exception(message, cause)

/** The Python that analyzes has ended; the message is the cause and the remedy, in one line. */
final class PythonLost(message: String) extends Exception(message)

/** A statement gave no sign of life for too long. */
final class PythonSilent(limitMillis: Long)
  extends Exception(
    s"nothing was heard of it for $limitMillis ms: the storage of its statistics or of its data files does not answer. " +
      "A longer silence is allowed by spark.metastore.analyze.timeout")

object PythonLost {
  private val Kill = 9
  private val Names =
    Map(4 -> "SIGILL", 6 -> "SIGABRT", 7 -> "SIGBUS", Kill -> "SIGKILL", 11 -> "SIGSEGV", 15 -> "SIGTERM")
  private val NextOne = "The next ANALYZE starts another one and uses what this one finished"

  /** The process was ended by a signal; the system sends SIGKILL when it lacks memory. */
  def killed(exit: Int): PythonLost = {
    val signal = exit - PythonProcess.SignalsFrom
    val memory = if (signal != Kill) ""
    else
      ", as a host or container does that runs out of memory: give the driver's more (spark.driver.memoryOverhead), or " +
        "analyze fewer columns at a time (FOR COLUMNS)"
    new PythonLost(
      s"its Python process was killed by ${Names.getOrElse(signal, s"signal $signal")} " +
        s"(exit $exit)$memory. $NextOne")
  }

  /** The process ended by itself. */
  def ended(how: String): PythonLost = new PythonLost(s"its Python process $how. $NextOne")
}

/**
 * The methods that the attached process calls over py4j: it uses the session of a statement, and answers it.
 */
final class PythonEntry(ready: CountDownLatch) {
  private final class LentSession(
      val session: SparkSession,
      val properties: Map[String, String],
      val answer: Promise[String],
      val activity: StatementActivity) {
    @volatile var server: Option[Thread] = None
  }

  private val lent = new ConcurrentHashMap[String, LentSession]()

  /** Lends a session for one statement. */
  def lend(
      key: String,
      session: SparkSession,
      properties: Map[String, String],
      answer: Promise[String],
      activity: StatementActivity): Unit =
    lent.put(key, new LentSession(session, properties, answer, activity))

  /** Ends the loan of a session after its statement. */
  def takeBack(key: String): Unit = lent.remove(key)

  /** Interrupts the threads that serve statements: they may wait for storage that never answers. */
  def interrupt(): Unit =
    for {
      statement <- lent.values.asScala
      server <- statement.server
    } server.interrupt()

  // Called from Python, by these names.

  /** The process is attached and waits for statements. */
  def attached(): Unit = ready.countDown()

  /** The session of a statement; it becomes the active one of the thread that serves Python. */
  def session(key: String): SparkSession = {
    val statement = lent.get(key)
    statement.server = Some(Thread.currentThread)
    SparkSession.setActiveSession(statement.session)
    statement.session
  }

  /** The local properties of the statement's thread, for the jobs that Python starts. */
  def properties(key: String): JavaMap[String, String] = lent.get(key).properties.asJava

  /** Prints lines for the user who waits for a statement. */
  def say(lines: String): Unit = ProgressConsole.print(lines)

  /** The answer to a statement, as JSON. */
  def answer(key: String, json: String): Unit = Option(lent.get(key)).foreach(_.answer.trySuccess(json))
}

/**
 * The driver's standard error. A user reads it at a terminal or in a notebook, but not in a server or a job.
 */
object ProgressConsole {
  private val Servers = Seq("HiveThriftServer2", "SparkConnectServer")
  private val PythonDriver = "pyspark-shell" // what `python` starts: a shell, a script, a notebook
  private val Progress = "spark.ui.showConsoleProgress"
  private val PatienceSeconds = 5L

  /** Whether to show the progress of a statement: a user waits for it and reads standard error. */
  def isFor(statement: PythonStatement, context: SparkContext): Boolean = {
    val command = sys.props.getOrElse("sun.java.command", "")
    val isServer = Servers.exists(command.contains(_))
    val isOff = context.getConf.getOption(Progress).contains("false")
    statement.isWaitedFor && !isOff && !isServer && (command.contains(PythonDriver) || isTerminal)
  }

  /** Prints one or more lines. On a terminal they overwrite Spark's bar, which appears again below them. */
  def print(lines: String): Unit = {
    System.err.print(if (isTerminal) "\r\u001b[K" + lines else lines)
    System.err.flush()
  }

  /** Whether standard error is a terminal. Java has no method for that. */
  private lazy val isTerminal: Boolean = Try {
    val test =
      new ProcessBuilder("sh", "-c", "test -t 2").redirectError(ProcessBuilder.Redirect.INHERIT).start()
    test.waitFor(PatienceSeconds, TimeUnit.SECONDS) && test.exitValue == 0
  }.getOrElse(false)
}
