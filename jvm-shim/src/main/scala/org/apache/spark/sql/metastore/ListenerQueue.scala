package org.apache.spark.sql.metastore

import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession

/** The queue of Spark's listener events, which it shows to its own packages only. */
object ListenerQueue {

  /** Waits until listeners have all events so far, at most so long. */
  def await(session: SparkSession, millis: Long): Unit =
    try session.sparkContext.listenerBus.waitUntilEmpty(millis)
    catch { case _: TimeoutException => () }
}
