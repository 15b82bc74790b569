package org.apache.spark.metastore

import org.apache.spark.{SparkConf, SparkContext}

/** The conf that new sessions of a running SparkContext start from; Spark shows it to its own packages only. */
object ContextConf {

  /** The live conf of the active SparkContext, if there is one. */
  def active: Option[SparkConf] = SparkContext.getActive.map(_.conf)
}
