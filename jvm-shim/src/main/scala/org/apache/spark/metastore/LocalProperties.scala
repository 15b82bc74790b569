package org.apache.spark.metastore

import scala.collection.JavaConverters._

import org.apache.spark.SparkContext

/** What Spark attaches to the jobs of the current thread (job group, tags, scheduler pool); for its own packages only. */
object LocalProperties {

  /** A copy of the properties of the current thread. */
  def of(context: SparkContext): Map[String, String] =
    Option(context.getLocalProperties).fold(Map.empty[String, String]) { properties =>
      properties.stringPropertyNames.asScala.map(name => name -> properties.getProperty(name)).toMap
    }
}
