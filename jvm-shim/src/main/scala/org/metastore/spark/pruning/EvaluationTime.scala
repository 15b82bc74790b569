package org.metastore.spark.pruning

import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeoutException

import org.metastore.spark.conf.MetastoreConf

/** Limits the time to evaluate all conditions of a query on values, to a quarter of the planning timeout. */
private[spark] final class EvaluationTime {
  private lazy val limit = MILLISECONDS.toNanos(MetastoreConf().planningTimeoutMillis) / 4
  private var spent = 0L

  /** The end of the time, as `System.nanoTime` counts. Throws TimeoutException if no time remains. */
  def deadline(now: Long): Long =
    if (spent < limit) now + limit - spent
    else throw new TimeoutException("conditions take too long to evaluate")

  def spend(nanos: Long): Unit = spent += nanos
}

private[spark] object EvaluationTime {
  private val threads = new ThreadLocal[EvaluationTime]

  /** Starts the time of a new query in this thread. */
  def begin(): Unit = threads.set(new EvaluationTime)

  /** The time of the query that this thread plans. */
  def current: EvaluationTime = Option(threads.get).getOrElse(new EvaluationTime)
}

/** Ends the evaluation of one condition when the query's time is over: even few values may take long. */
private[spark] final class EvaluationClock {
  private val time = EvaluationTime.current
  private var isFirst = true
  private var deadline = 0L

  /** Evaluates the condition on a value. Throws what the evaluation throws, and TimeoutException. */
  def run[A](evaluate: => A): A = {
    val start = System.nanoTime()
    deadline = time.deadline(start)
    try evaluate
    catch {
      case e: TimeoutException =>
        isFirst = false
        throw e
    } finally if (isFirst) isFirst = false // does not count: a cold session loads classes first
      else time.spend(System.nanoTime() - start)
  }

  /** Throws TimeoutException if the time is over; called while a value is evaluated. */
  def check(): Unit =
    if (System.nanoTime() > deadline) throw new TimeoutException("a value takes too long to evaluate")
}
