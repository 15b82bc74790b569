package org.apache.spark.sql.metastore

import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession

/** What Spark has still to tell its listeners, which it shows to its own packages only. */
object ListenerQueue {

  /** Waits until all that happened so far was told, at most so long. */
  def await(session: SparkSession, millis: Long): Unit =
    try session.sparkContext.listenerBus.waitUntilEmpty(millis)
    catch { case _: TimeoutException => () }
}
