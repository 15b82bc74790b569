package org.metastore.spark.analyze

import java.util.concurrent.TimeUnit

import scala.util.Try

import org.apache.spark.SparkContext

/**
 * Who reads the driver's standard error while it runs: a person at a terminal, or in a notebook, whose kernel shows what the
 * JVM of its Python says. Nobody reads that of a server, of a batch job or of what was told not to show progress.
 */
object ProgressConsole {
  private val Servers = Seq("HiveThriftServer2", "SparkConnectServer")
  private val PythonDriver = "pyspark-shell" // what `python` starts: a shell, a script, a notebook
  private val Progress = "spark.ui.showConsoleProgress"
  private val PatienceSeconds = 5L

  /** Whether somebody reads. */
  def isThere(context: SparkContext): Boolean = {
    val command = sys.props.getOrElse("sun.java.command", "")
    !context.getConf.getOption(Progress).contains("false") && !Servers.exists(command.contains(_)) &&
      (command.contains(PythonDriver) || isTerminal)
  }

  /** A line, or several. On a terminal they take the place of Spark's bar, which comes again below them. */
  def print(lines: String): Unit = {
    System.err.print(if (isTerminal) "\r\u001b[K" + lines else lines)
    System.err.flush()
  }

  /** Java does not say it of standard error. */
  private lazy val isTerminal: Boolean = Try {
    val asked = new ProcessBuilder("sh", "-c", "test -t 2").redirectError(ProcessBuilder.Redirect.INHERIT).start()
    asked.waitFor(PatienceSeconds, TimeUnit.SECONDS) && asked.exitValue == 0
  }.getOrElse(false)
}
