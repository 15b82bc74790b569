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
  def of(context: SparkContext): PythonInterpreter = {
    val conf = context.getConf
    def set(key: String) = conf.getOption(key).filter(_.nonEmpty)
    def environment(name: String) = sys.env.get(name).filter(_.nonEmpty)
    PythonInterpreter(set(MetastoreConf.Python.key).orElse(environment(MetastoreConf.Python.environment))
      .orElse(set("spark.pyspark.python")).orElse(environment("PYSPARK_PYTHON"))
      .orElse(besideSpark)
      .getOrElse("python3"))
  }

  /** What the process is told besides its own environment: how to reach this JVM, and Spark's own Python. */
  def environment(interpreter: PythonInterpreter, port: Int, secret: String): Map[String, String] = {
    val python =
      sparkHome.map(_.resolve("python")).filter(folder => Files.isDirectory(folder.resolve("pyspark")))
    val zips = python.toSeq.flatMap(folder => Option(folder.resolve("lib").toFile.listFiles).toSeq.flatten)
      .filter(file => file.getName.startsWith("py4j") && file.getName.endsWith(".zip")).map(_.getPath)
    val path = sys.env.get("PYTHONPATH").filter(_.nonEmpty).toSeq ++ python.map(_.toString) ++ zips
    Map(
      "PYSPARK_GATEWAY_PORT" -> port.toString,
      "PYSPARK_GATEWAY_SECRET" -> secret,
      "PYSPARK_PYTHON" -> interpreter.command,
      "PYSPARK_PIN_THREAD" -> "true") ++
      sparkHome.map("SPARK_HOME" -> _.toString) ++
      (if (path.isEmpty) None else Some("PYTHONPATH" -> path.mkString(File.pathSeparator)))
  }

  /** `pip` puts Spark into `<environment>/lib/pythonX/site-packages/pyspark`; of a Spark elsewhere nothing is beside it. */
  private def besideSpark: Option[String] =
    sparkHome.filter(home =>
      Try(home.getParent.getFileName.toString).toOption.exists(_.endsWith("-packages")))
      .flatMap(home => Try(home.resolve("../../../../bin/python").normalize).toOption)
      .filter(Files.isExecutable(_)).map(_.toString)

  private def sparkHome: Option[Path] = sys.env.get("SPARK_HOME").map(Paths.get(_)).orElse(Try {
    Paths.get(classOf[SparkContext].getProtectionDomain.getCodeSource.getLocation.toURI).getParent.getParent
  }.toOption)
}
