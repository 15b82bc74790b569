package org.metastore.spark.conf

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.util.Try

import org.apache.spark.SparkContext

import org.metastore.spark.reason.Optional

/**
 * A Python of the driver's host that can run ANALYZE.
 *
 * @param command its path, or a name of the PATH
 * @param workersCommand the Python that its jobs run on the executors' hosts
 */
final case class PythonInterpreter(command: String, workersCommand: String)

object PythonInterpreter {

  /**
   * Variables of a Connect client: a driver that has them must not make a Connect client of the attached
   * process.
   */
  val variablesToUnset: Seq[String] = Seq(
    "SPARK_REMOTE",
    "SPARK_LOCAL_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_API_MODE",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_DRIVER_PYTHON",
    "PYTHONSTARTUP")

  private val DefaultPython = "python3"

  /**
   * Lists the Pythons of the driver's host in the order in which they are tried: `spark.metastore.python`
   * alone if it is set; else the one that started this driver, the one beside a Spark that pip installed, and
   * the workers'.
   */
  def candidates(context: SparkContext): Seq[PythonInterpreter] = {
    val configured = setting(context, MetastoreConf.Python.key, MetastoreConf.Python.environment)
    val workersPython = setting(context, "spark.pyspark.python", "PYSPARK_PYTHON", DefaultPython)
    val commands = if (configured.nonEmpty) Seq(configured)
    else searchDriverHost(context) :+ workersPython :+ DefaultPython
    // A path of the driver's host may not exist on the executors' hosts.
    commands.distinct.map(command =>
      PythonInterpreter(command, if (context.isLocal) command else workersPython))
  }

  private def searchDriverHost(context: SparkContext): Seq[String] = {
    val drivers = setting(context, "spark.pyspark.driver.python", "PYSPARK_DRIVER_PYTHON")
    Seq(drivers, ParentProcess.command).filter(isPython) ++ besideSpark // a driver of Jupyter names `jupyter`
  }

  private def isPython(command: String): Boolean =
    Paths.get(command).getFileName.toString.matches("i?python[0-9.]*")

  /** A setting of the context, else a variable of the environment, else the default. */
  private def setting(context: SparkContext, key: String, variable: String, default: String = ""): String =
    Seq(context.getConf.get(key, ""), environment(variable)).find(_.nonEmpty).getOrElse(default)

  private def environment(name: String): String = sys.env.getOrElse(name, "")

  /** The variables that the process gets besides its own: the gateway to this JVM, and Spark's own Python. */
  def environment(interpreter: PythonInterpreter, port: Int, secret: String): Map[String, String] = {
    val gateway = Map(
      "PYSPARK_GATEWAY_PORT" -> port.toString,
      "PYSPARK_GATEWAY_SECRET" -> secret,
      "PYSPARK_PYTHON" -> interpreter.workersCommand,
      "PYSPARK_PIN_THREAD" -> "true")
    val spark = sparkHome.map("SPARK_HOME" -> _.toString)
    val folders = environment("PYTHONPATH") +: sparkHome.toSeq.flatMap(pythonOf)
    val path = folders.filter(_.nonEmpty).mkString(File.pathSeparator)
    gateway ++ spark ++ Optional.when(path.nonEmpty)("PYTHONPATH" -> path)
  }

  /** Spark's own Python and the py4j that comes with it, as far as they exist. */
  private def pythonOf(home: Path): Seq[String] = {
    val python = home.resolve("python")
    val zips =
      python.resolve("lib").toFile.list((_, name) => name.startsWith("py4j") && name.endsWith(".zip"))
    if (!Files.isDirectory(python.resolve("pyspark"))) Nil
    else if (zips == null) Seq(python.toString)
    else python.toString +: zips.toSeq.map(python.resolve("lib").resolve(_).toString)
  }

  /**
   * The Python of the environment into which pip installed Spark:
   * `<environment>/lib/pythonX/site-packages/pyspark`.
   */
  private def besideSpark: Option[String] = for {
    home <- sparkHome
    folder <- Option(home.getParent).flatMap(parent => Option(parent.getFileName))
    python = home.resolve("../../../../bin/python").normalize
    if folder.toString.endsWith("-packages") && Files.isExecutable(python)
  } yield python.toString

  private def sparkHome: Option[Path] = {
    def jars = Paths.get(classOf[SparkContext].getProtectionDomain.getCodeSource.getLocation.toURI)
    sys.env.get("SPARK_HOME").map(Paths.get(_)).orElse(Try(jars.getParent.getParent).toOption)
  }
}

/** The program that started this JVM: of `python job.py`, a shell or a notebook it is the driver's Python. */
private object ParentProcess {

  /**
   * Its command, or empty if unknown. Java knows the file that runs: if an environment's Python is a link,
   * that is the system's Python. Linux knows the name by which it was started.
   */
  lazy val command: String = {
    val parent = ProcessHandle.current.parent
    if (!parent.isPresent) ""
    else Try(startName(parent.get.pid)).getOrElse(parent.get.info.command.orElse(""))
  }

  private def startName(pid: Long): String = {
    val process = Paths.get("/proc", pid.toString)
    val words = new String(Files.readAllBytes(process.resolve("cmdline")), UTF_8)
    val name = words.takeWhile(_ != '\u0000')
    if (name.contains('/')) process.resolve("cwd").toRealPath().resolve(name).toString else name
  }
}
