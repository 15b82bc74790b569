package org.metastore.spark.pruning

import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeoutException

import org.metastore.spark.conf.MetastoreConf

/** The time that all conditions of a query may take to be evaluated on values: a quarter of the planning timeout. */
private[spark] final class EvaluationTime {
  private lazy val limit = MILLISECONDS.toNanos(MetastoreConf().planningTimeoutMillis) / 4
  private var spent = 0L

  /** When it is over, by `System.nanoTime`; raises TimeoutException where it is. */
  def deadline(now: Long): Long =
    if (spent < limit) now + limit - spent
    else throw new TimeoutException("conditions take too long to evaluate")

  def spend(nanos: Long): Unit = spent += nanos
}

private[spark] object EvaluationTime {
  private val threads = new ThreadLocal[EvaluationTime]

  /** A new query begins in this thread. */
  def begin(): Unit = threads.set(new EvaluationTime)

  /** That of the query which this thread plans. */
  def current: EvaluationTime = Option(threads.get).getOrElse(new EvaluationTime)
}

/** Ends the evaluations of one condition where the query's time for them is over: counted values are few. */
private[spark] final class EvaluationClock {
  private val time = EvaluationTime.current
  private var isFirst = true
  private var deadline = 0L

  /** Evaluates it on a value. Raises what that raises, and TimeoutException. */
  def run[A](evaluate: => A): A = {
    val start = System.nanoTime()
    deadline = time.deadline(start)
    try evaluate
    catch {
      case e: TimeoutException =>
        isFirst = false
        throw e
    } finally if (isFirst) isFirst = false // a cold session may take long to load what evaluates it
      else time.spend(System.nanoTime() - start)
  }

  /** Called while a value is evaluated. */
  def check(): Unit =
    if (System.nanoTime() > deadline) throw new TimeoutException("a value takes too long to evaluate")
}
