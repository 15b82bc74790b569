package org.metastore.spark

import java.util.Properties

import scala.runtime.AbstractFunction1

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.slf4j.LoggerFactory

/**
 * What Spark loads and users list: finds the build of the shim that is made for this Spark, and applies it.
 *
 * One class file of this serves every Spark and Scala, so it names nothing that differs between them: of Scala's library
 * only what 2.12 and 2.13 share, and no closures. What differs has a package of its own for each line of Spark
 * (`org.metastore.spark.v41` for 4.1) and is named after Spark's version has been looked at. On a Spark without a build it
 * adds nothing: that Spark runs as if this jar were not there.
 */
class MetastoreExtensions extends AbstractFunction1[SparkSessionExtensions, Unit] with SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = MetastoreExtensions.applyTo(extensions)
}

object MetastoreExtensions {
  private val log = LoggerFactory.getLogger("org.metastore.spark.MetastoreExtensions")

  /** A released version, or a vendor's of it; a preview or a snapshot may differ from both releases beside it. */
  private val Released = "(\\d+)\\.(\\d+)\\.\\d+(?!.*(SNAPSHOT|preview|rc)).*"

  private val Nothing = "The Metastore adds nothing to this Spark " + SPARK_VERSION

  /** What the build for this Spark adds; null where there is none. Looked for once, so said once. */
  private val build: SparkSessionExtensionsProvider = find()

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
    val lines = builtFor()
    val line = if (SPARK_VERSION.matches(Released)) SPARK_VERSION.replaceFirst(Released, "$1.$2") else SPARK_VERSION
    if ((" " + lines + " ").contains(" " + line + " ")) {
      val name = "org.metastore.spark.v" + line.replace(".", "") + ".SessionExtensions"
      Class.forName(name, true, getClass.getClassLoader).getConstructor().newInstance()
        .asInstanceOf[SparkSessionExtensionsProvider]
    } else {
      log.warn("The Metastore is built for Spark " + lines.replace(" ", ", ") + ", this is " + SPARK_VERSION + ": it adds nothing")
      null
    }
  }

  /** The lines of Spark that the jar has a build for, with blanks between them. */
  private def builtFor(): String = {
    val facts = new Properties
    val stream = getClass.getResourceAsStream("/metastore-shim.properties")
    if (stream != null)
      try facts.load(stream)
      finally stream.close()
    facts.getProperty("lines", "")
  }
}
