package org.metastore.spark.scan

import java.util.{ArrayList, Collections, HashMap, Map => JMap, WeakHashMap}
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.SparkSession

import org.metastore.spark.pruning.EvaluationTime

/** State that the main plan and the sub-queries of one query share while one thread plans them. */
final class PlanningContext(val write: Option[PlanScope.Write], findsRows: Boolean = false) {
  private val patience =
    if (findsRows) PlanningContext.CommandPatience
    else if (WarmUp.isDone) 1L
    else PlanningContext.ColdPatience
  private val statistics = new HashMap[AnyRef, AnyRef]()
  private val valuesOfEqual = Collections.synchronizedMap(new WeakHashMap[AnyRef, AnyRef]())
  private val spent = new AtomicLong
  private val started = new ThreadLocal[java.lang.Long] // start of the outermost block that counts its time

  /** The value of a key, computed once: one version of the statistics for the whole query. */
  def once[A <: AnyRef](key: AnyRef)(load: => A): A = memoize(statistics, key)(load)

  /** The value that equal objects share; it is made for the first of them, and stays as long as that one. */
  def shareAmongEqual[A <: AnyRef](key: AnyRef)(make: => A): A = memoize(valuesOfEqual, key)(make)

  // Not `computeIfAbsent`: making one value may need another one.
  private def memoize[A <: AnyRef](values: JMap[AnyRef, AnyRef], key: AnyRef)(make: => A): A = {
    val present = values.get(key)
    if (present != null) present.asInstanceOf[A]
    else {
      val value = make
      values.put(key, value)
      value
    }
  }

  /** Drops values whose objects are no longer in use: the map does so only when one of its methods runs. */
  private def forgetUnused(): Unit = valuesOfEqual.size

  /** The session's Hadoop configuration: a copy of all its settings, made when something is read. */
  def hadoop(session: SparkSession): Configuration = once(session)(session.sessionState.newHadoopConf())

  /** The rest of a planning timeout, in milliseconds. */
  def remainingMillis(timeoutMillis: Long): Long = {
    val running = Option(started.get).fold(0L)(System.nanoTime() - _)
    math.max(0L, timeoutMillis * patience - TimeUnit.NANOSECONDS.toMillis(spent.get + running))
  }

  /** Counts the time that a block takes against the planning timeout. */
  def countTime[A](block: => A): A =
    if (started.get != null) block
    else {
      val start = System.nanoTime()
      started.set(start)
      try block
      finally {
        started.remove()
        spent.addAndGet(System.nanoTime() - start)
      }
    }
}

object PlanningContext {
  private val threads = new ThreadLocal[PlanningContext]
  private val contexts = Collections.synchronizedMap(new WeakHashMap[PlanningContext, AnyRef]())

  // The timeout is for storage that hangs. Before the warm-up ends, a query may have to load the reader's
  // classes.
  private val ColdPatience = 5L

  // An UPDATE, DELETE or MERGE takes minutes: it pays to wait longer for statistics that save files.
  private val CommandPatience = 15L

  /** The context of the query that this thread plans. */
  def current: PlanningContext = {
    if (threads.get == null) keep(new PlanningContext(None))
    threads.get
  }

  /** Runs a block that may plan other queries in this thread. */
  def aside[A](block: => A): A = {
    val context = current
    try block
    finally threads.set(context)
  }

  /** Begins a new query in this thread; `findsRows`: whether a command finds its rows by it. */
  def begin(write: Option[PlanScope.Write], findsRows: Boolean): PlanningContext = {
    contexts.synchronized(new ArrayList(contexts.keySet)).forEach(_.forgetUnused())
    keep(new PlanningContext(write, findsRows))
    EvaluationTime.begin()
    threads.get
  }

  private def keep(context: PlanningContext): Unit = {
    threads.set(context)
    contexts.put(context, None)
  }
}
