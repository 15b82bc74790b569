package org.apache.spark.metastore

import scala.collection.JavaConverters._

import org.apache.spark.{SparkConf, SparkContext}

/** The conf that new sessions of a running SparkContext start from; Spark shows it to its own packages only. */
object ContextConf {

  /** The live conf of the active SparkContext, if there is one. */
  def active: Option[SparkConf] = SparkContext.getActive.map(_.conf)
}

/** What Spark attaches to the jobs of the current thread (job group, tags, scheduler pool); for its own packages only. */
object LocalProperties {

  /** A copy of the properties of the current thread. */
  def of(context: SparkContext): Map[String, String] =
    Option(context.getLocalProperties).fold(Map.empty[String, String]) { properties =>
      properties.stringPropertyNames.asScala.map(name => name -> properties.getProperty(name)).toMap
    }
}
