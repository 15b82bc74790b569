package org.metastore.spark.store

import java.io.IOException
import java.util.concurrent.{Callable, ExecutionException, Future, LinkedBlockingQueue, ThreadFactory, ThreadPoolExecutor, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import org.metastore.spark.explain.{Reason, ReasonCode}

/** How long one query may wait for statistics, all reads together. */
private[store] final class Budget(limitMillis: Long) {
  private val left = new AtomicLong(TimeUnit.MILLISECONDS.toNanos(math.max(limitMillis, 0)))

  /** Waits for a result, at most until the budget is used up. */
  def await[T](future: Future[T]): T = {
    val started = System.nanoTime()
    try future.get(math.max(left.get, 0), TimeUnit.NANOSECONDS)
    finally left.addAndGet(started - System.nanoTime())
  }

  def timeout: Reason = Reason(ReasonCode.PlanningTimeout, "limit" -> s"$limitMillis ms")
}

/**
 * Reads statistics beside the planning thread: storage that hangs costs a query its time limit and no more, and columns are
 * decoded on several cores. A read that is given up goes on and fills the cache for the next query.
 */
private[store] object PlanningPool {
  private val log = LoggerFactory.getLogger("org.metastore.spark.store")
  private val Threads = math.max(2, math.min(8, Runtime.getRuntime.availableProcessors))
  private val KeepAliveSeconds = 60L
  private val counter = new AtomicInteger()

  private val daemons: ThreadFactory = body => {
    val thread = new Thread(body, s"metastore-planning-${counter.incrementAndGet()}")
    thread.setDaemon(true)
    thread
  }

  private val executor = {
    val pool = new ThreadPoolExecutor(
      Threads, Threads, KeepAliveSeconds, TimeUnit.SECONDS, new LinkedBlockingQueue[Runnable](), daemons)
    pool.allowCoreThreadTimeOut(true)
    pool
  }

  /** Runs the reads side by side; a failure becomes its reason, with one line in the log. */
  def run[T](reads: Seq[() => T], budget: Budget): Seq[Either[Reason, T]] = start(reads, budget)()

  /** As `run`; the results are waited for when they are asked for. */
  def start[T](reads: Seq[() => T], budget: Budget): () => Seq[Either[Reason, T]] = {
    val futures = reads.map(read => executor.submit(new Callable[T] { override def call(): T = read() }))
    () => futures.map { future =>
      try Right(budget.await(future))
      catch { case NonFatal(e) => Left(logged(reason(e, budget))) }
    }
  }

  /** The reason of a failure, logged. */
  def explained(failure: Throwable, budget: Budget): Reason = logged(reason(failure, budget))

  private def reason(failure: Throwable, budget: Budget): Reason = failure match {
    case _: TimeoutException => budget.timeout
    case e: ExecutionException => reason(e.getCause, budget)
    case e: StoreException => e.reason
    case e: IOException => Reason(ReasonCode.StoreUnreadable, "error" -> e.toString)
    case e => Reason.failure(e)
  }

  private def logged(reason: Reason): Reason = {
    log.warn("Planning without some statistics: {}", reason)
    reason
  }
}
