package org.apache.spark.metastore

import scala.collection.JavaConverters._

import com.codahale.metrics.MetricRegistry

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.metrics.source.Source

/** The conf from which new sessions of a running SparkContext start. Only Spark's own packages see it. */
object ContextConf {

  /** The live conf of the active SparkContext, if there is one. */
  def active: Option[SparkConf] = SparkContext.getActive.map(_.conf)
}

/**
 * The properties of the current thread's jobs: job group, tags, scheduler pool. Only Spark's own packages see
 * them.
 */
object LocalProperties {

  /** A copy of the properties of the current thread. */
  def copy(context: SparkContext): Map[String, String] = {
    val properties = context.getLocalProperties
    if (properties == null) Map.empty
    else properties.stringPropertyNames.asScala.map(name => name -> properties.getProperty(name)).toMap
  }
}

/** Metrics beside Spark's own, which it takes from its own packages only. */
object MetricsSource {
  private final class Registered(override val sourceName: String, override val metricRegistry: MetricRegistry)
    extends Source

  /** Registers the metrics of a registry with every sink of a driver, once. */
  def register(context: SparkContext, name: String, registry: MetricRegistry): Unit = {
    val system = context.env.metricsSystem
    if (system.getSourcesByName(name).isEmpty) system.registerSource(new Registered(name, registry))
  }
}
