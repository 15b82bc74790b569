package org.metastore.spark

import java.util.Properties

import scala.runtime.AbstractFunction1
import scala.util.{Properties => ScalaVersion}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.slf4j.LoggerFactory

/**
 * The class that Spark loads and users list: finds the build of the shim for this Spark and Scala, and
 * applies it.
 *
 * One class file serves every Spark and Scala, so it names nothing that differs between them: of Scala's
 * library only what 2.12 and 2.13 share, and no closures. Each build has packages of its own
 * (`org.metastore.spark.v41` for 4.1 and later), which are named only after Spark's version is known. On a
 * Spark without a build the extension adds nothing: that Spark runs as if this jar were not there.
 */
class MetastoreExtensions
  extends AbstractFunction1[SparkSessionExtensions, Unit]
  with SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = MetastoreExtensions.applyTo(extensions)
}

object MetastoreExtensions {
  private val log = LoggerFactory.getLogger("org.metastore.spark.MetastoreExtensions")

  /** A released version, or a vendor's build of it. A preview or a snapshot may differ from any release. */
  private val Released = "(\\d+)\\.(\\d+)\\.\\d+(?!.*(SNAPSHOT|preview|rc\\d|dev\\d)).*"

  private val Nothing = "The Metastore adds nothing to this Spark " + SPARK_VERSION

  /** The facts that the jar's build wrote: its lines of Spark, and the package for each line and Scala. */
  private val facts: Properties = readFacts()

  /** The build for this Spark, or null. A field, so that a missing build is logged once. */
  private val build: SparkSessionExtensionsProvider = find()

  /**
   * The last part of the build's package, such as `v41`; empty without a build for this Spark. Python calls
   * it.
   */
  def packageName(): String =
    facts.getProperty("package-" + lineOf(SPARK_VERSION) + "-" + scalaLine(), "")

  /** The line of a version, such as `3.5` of `3.5.6-amzn-1`; the version itself where it was not released. */
  def lineOf(version: String): String =
    if (version.matches(Released)) version.replaceFirst(Released, "$1.$2")
    else version

  /** A build that cannot be loaded or applied costs its own benefit, never a session. */
  private def applyTo(extensions: SparkSessionExtensions): Unit =
    try if (build != null) build.apply(extensions)
    catch {
      case e: Exception => log.warn(Nothing, e)
      case e: LinkageError => log.warn(Nothing, e)
    }

  private def find(): SparkSessionExtensionsProvider =
    try load()
    catch {
      case e: Exception => log.warn(Nothing, e); null
      case e: LinkageError => log.warn(Nothing, e); null
    }

  private def load(): SparkSessionExtensionsProvider = {
    val name = packageName()
    if (name.isEmpty) {
      log.warn("The Metastore is built for Spark " + facts.getProperty(
        "lines",
        "").replace(" ", ", ") + ", this is " +
        SPARK_VERSION + " with Scala " + scalaLine() + ": it adds nothing")
      null
    } else {
      val extensions = "org.metastore.spark." + name + ".SessionExtensions"
      Class.forName(extensions, true, getClass.getClassLoader).getConstructor().newInstance()
        .asInstanceOf[SparkSessionExtensionsProvider]
    }
  }

  private def scalaLine(): String = ScalaVersion.versionNumberString.replaceFirst("(\\d+\\.\\d+).*", "$1")

  private def readFacts(): Properties = {
    val read = new Properties
    val stream = getClass.getResourceAsStream("/metastore-shim.properties")
    if (stream != null)
      try read.load(stream)
      finally stream.close()
    read
  }
}
