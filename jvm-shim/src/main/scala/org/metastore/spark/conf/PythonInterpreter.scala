package org.metastore.spark.conf

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.util.Try

import org.apache.spark.SparkContext

/** The Python that runs ANALYZE on the driver's host, and the environment that it gets. */
final case class PythonInterpreter(command: String)

object PythonInterpreter {

  /** A driver that was started as, or for, a Connect client must not make a Connect client of the attached process. */
  val variablesToUnset: Seq[String] = Seq(
    "SPARK_REMOTE",
    "SPARK_LOCAL_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_API_MODE",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_DRIVER_PYTHON",
    "PYTHONSTARTUP")

  /**
   * Finds it: `spark.metastore.python`, `spark.pyspark.python`, `PYSPARK_PYTHON`, the one beside a Spark that pip installed,
   * `python3`. Not `PYSPARK_DRIVER_PYTHON`, which is often jupyter.
   */
  def fromContext(context: SparkContext): PythonInterpreter = {
    val conf = context.getConf
    val commands = Seq(
      conf.get(MetastoreConf.Python.key, ""),
      environment(MetastoreConf.Python.environment),
      conf.get("spark.pyspark.python", ""),
      environment("PYSPARK_PYTHON"),
      besideSpark.getOrElse(""),
      "python3")
    PythonInterpreter(commands.find(_.nonEmpty).get)
  }

  private def environment(name: String): String = sys.env.getOrElse(name, "")

  /** What the process is told besides its own environment: how to reach this JVM, and Spark's own Python. */
  def environment(interpreter: PythonInterpreter, port: Int, secret: String): Map[String, String] = {
    val ofProcess = Map(
      "PYSPARK_GATEWAY_PORT" -> port.toString,
      "PYSPARK_GATEWAY_SECRET" -> secret,
      "PYSPARK_PYTHON" -> interpreter.command,
      "PYSPARK_PIN_THREAD" -> "true")
    val ofSpark = sparkHome.map("SPARK_HOME" -> _.toString)
    val folders = environment("PYTHONPATH") +: sparkHome.toSeq.flatMap(pythonOf)
    val path = folders.filter(_.nonEmpty).mkString(File.pathSeparator)
    ofProcess ++ ofSpark ++ (if (path.isEmpty) None else Some("PYTHONPATH" -> path))
  }

  /** Spark's own Python and the py4j that comes with it; nothing where they are not there. */
  private def pythonOf(home: Path): Seq[String] = {
    val python = home.resolve("python")
    val zips =
      python.resolve("lib").toFile.list((_, name) => name.startsWith("py4j") && name.endsWith(".zip"))
    if (!Files.isDirectory(python.resolve("pyspark"))) Nil
    else if (zips == null) Seq(python.toString)
    else python.toString +: zips.toSeq.map(python.resolve("lib").resolve(_).toString)
  }

  /** `pip` puts Spark into `<environment>/lib/pythonX/site-packages/pyspark`; of a Spark elsewhere nothing is beside it. */
  private def besideSpark: Option[String] = for {
    home <- sparkHome
    folder <- Option(home.getParent).flatMap(parent => Option(parent.getFileName))
    python = home.resolve("../../../../bin/python").normalize
    if folder.toString.endsWith("-packages") && Files.isExecutable(python)
  } yield python.toString

  private def sparkHome: Option[Path] = {
    def ofJars = Paths.get(classOf[SparkContext].getProtectionDomain.getCodeSource.getLocation.toURI)
    sys.env.get("SPARK_HOME").map(Paths.get(_)).orElse(Try(ofJars.getParent.getParent).toOption)
  }
}
