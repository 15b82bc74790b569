package org.apache.spark.sql.metastore

import org.apache.spark.sql.{SparkSession, classic}

/** Copies of sessions, which Spark makes for its own packages only. */
object SessionCopy {

  /** A session with the same settings, views and functions, which can be changed without the first one. */
  def apply(session: SparkSession): SparkSession = session.asInstanceOf[classic.SparkSession].cloneSession()
}
