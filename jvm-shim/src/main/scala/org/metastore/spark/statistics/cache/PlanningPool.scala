package org.metastore.spark.statistics.cache

import java.io.IOException
import java.util.concurrent.{
  CompletableFuture, ConcurrentHashMap, ExecutionException, LinkedBlockingQueue, ScheduledThreadPoolExecutor,
  ThreadFactory,
  ThreadPoolExecutor, TimeoutException, TimeUnit
}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong, AtomicReference}

import org.slf4j.LoggerFactory

import org.metastore.spark.reason.{
  Attempt, DamagedObjectException, QueryWarnings, Reason, ReasonCode, StatisticsException
}

/**
 * The time that one query may wait for the statistics in one store, all reads together, and the driver's
 * memory that they may take.
 */
private[spark] final class Budget(leftMillis: Long, limitMillis: Long, val store: String) {
  private val remaining = new AtomicLong(TimeUnit.MILLISECONDS.toNanos(math.max(leftMillis, 0)))
  private val room = new AtomicLong(Budget.MostHeld)

  /** Waits for a result, at most until the budget is used up. */
  def await[T](result: CompletableFuture[T]): T = {
    val started = System.nanoTime()
    try result.get(math.max(remaining.get, 0), TimeUnit.NANOSECONDS)
    finally remaining.addAndGet(started - System.nanoTime())
  }

  /** The time that may still be spent on waiting. */
  def remainingMillis: Long = TimeUnit.NANOSECONDS.toMillis(remaining.get)

  /** Waits with half of the remaining time, for a read that has a substitute. */
  def half[T](await: Budget => T): T = {
    val started = System.nanoTime()
    try await(new Budget(remainingMillis / 2, limitMillis, store))
    finally remaining.addAndGet(started - System.nanoTime())
  }

  /** Counts bytes that stay in memory until the query is planned. */
  def reserve(bytes: Long): Unit =
    if (room.addAndGet(-bytes) < 0)
      throw new DamagedObjectException(
        store,
        s"its statistics take more than ${Budget.MostHeld >> 20} MB of the driver's memory")

  /**
   * The budget of reads for estimates alone: their failures cost no pruning, neither of this query nor of
   * others.
   */
  def forEstimates: Budget =
    new Budget(remainingMillis, limitMillis, s"estimates of $store")

  def timeout: Reason = Reason(ReasonCode.PlanningTimeout, "limit" -> s"$limitMillis ms")
}

private[statistics] object Budget {
  private val MostHeld = math.min(4L << 30, Runtime.getRuntime.maxMemory / 2)
}

/**
 * Reads statistics beside the planning thread. Storage that hangs costs a query at most its time limit, and
 * columns are decoded on several cores.
 */
private[spark] object PlanningPool {
  private val log = LoggerFactory.getLogger("org.metastore.spark.statistics")
  private val Threads = 8 // most of the time they wait for storage
  private val MaxGivenUp = 64 // threads that may hang at a time; beyond, reads wait for one to end
  private val KeepAliveSeconds = 60L
  private val counter = new AtomicInteger()

  /** Time that a read may go on after its query gave it up; then its thread is interrupted. */
  private[statistics] val PatienceSeconds = 60L

  private val daemons: ThreadFactory = body => {
    val thread = new Thread(body, s"metastore-planning-${counter.incrementAndGet()}")
    thread.setDaemon(true)
    thread
  }

  private val executor = {
    val pool = new ThreadPoolExecutor(
      Threads,
      Threads,
      KeepAliveSeconds,
      TimeUnit.SECONDS,
      new LinkedBlockingQueue[Runnable](),
      daemons)
    pool.allowCoreThreadTimeOut(true)
    pool
  }
  private val interrupter = {
    val timer = new ScheduledThreadPoolExecutor(1, daemons)
    timer.setRemoveOnCancelPolicy(true)
    timer
  }

  /** Reads of each store that were given up and still run. */
  private val givenUp = new ConcurrentHashMap[String, Integer]()

  /** Runs the reads side by side; a failure becomes its reason, with one line in the log. */
  def run[T](reads: Seq[() => T], budget: Budget): Seq[Either[Reason, T]] = start(reads, budget)()

  /**
   * Reads for each thing, side by side. Returns each thing with its result, or with the reason of a failure.
   */
  def runFor[S, T](things: Seq[S], budget: Budget)(read: S => T): Seq[(S, Either[Reason, T])] =
    startFor(things, budget)(read)()

  /** Starts the reads of `run`; a call of the result waits for them. */
  def start[T](reads: Seq[() => T], budget: Budget): () => Seq[Either[Reason, T]] = {
    val results = beginEach(reads, budget.store)(_ => ())
    () => results(budget)
  }

  /** Starts the reads of `runFor`; a call of the result waits for them. */
  def startFor[S, T](things: Seq[S], budget: Budget)(read: S => T): () => Seq[(S, Either[Reason, T])] = {
    val results = start(things.map(thing => () => read(thing)), budget)
    () => things.zip(results())
  }

  /** Starts reads for which nobody may wait: each ends after the limit at the latest. */
  def begin[T](reads: Seq[() => T], store: String, limitMillis: Long): Budget => Seq[Either[Reason, T]] =
    beginEach(reads, store)(giveUpAfter(_, limitMillis))

  private def beginEach[T](reads: Seq[() => T], store: String)(
      onStart: Read[T] => Unit): Budget => Seq[Either[Reason, T]] =
    if (givenUp.containsKey(store)) budget => reads.map(fromMemory(_, budget))
    else {
      val started = reads.map(new Read(_, store))
      started.foreach(executor.execute(_))
      started.foreach(onStart)
      await(started, _)
    }

  private def giveUpAfter[T](read: Read[T], millis: Long): Unit = {
    val end = interrupter.schedule((() => read.giveUp()): Runnable, millis, TimeUnit.MILLISECONDS)
    read.result.whenComplete((_, _) => end.cancel(false))
    ()
  }

  private def await[T](started: Seq[Read[T]], budget: Budget): Seq[Either[Reason, T]] = {
    val results =
      try started.map(awaitOne(_, budget))
      catch {
        case e: InterruptedException => // the query is cancelled
          started.foreach(_.giveUp())
          throw e
      }
    for (Left(reason) <- results.find(_.isLeft)) logReason(reason) // many may fail alike
    results
  }

  private def awaitOne[T](read: Read[T], budget: Budget): Either[Reason, T] =
    Attempt.recover[Either[Reason, T]](Right(budget.await(read.result))) { failure =>
      if (failure.isInstanceOf[TimeoutException]) read.giveUp()
      Left(reason(failure, budget))
    }

  private def fromMemory[T](read: () => T, budget: Budget): Either[Reason, T] =
    Attempt.recover[Either[Reason, T]](Right(MemoryOnly.run(read())))(failure =>
      Left(reason(failure, budget)))

  /** Runs short tasks without storage in this thread. */
  def here[T](tasks: Seq[() => T], budget: Budget): Seq[Either[Reason, T]] = tasks.map { task =>
    Attempt.recover[Either[Reason, T]](Right(task()))(failure => Left(explain(failure, budget)))
  }

  /** The reason of a failure, logged once a query. */
  def explain(failure: Throwable, budget: Budget): Reason = logReason(reason(failure, budget))

  private def reason(failure: Throwable, budget: Budget): Reason = failure match {
    case _: TimeoutException | _: StoreNotAskedException => budget.timeout
    case e: ExecutionException => reason(e.getCause, budget)
    case e: StatisticsException => e.reason
    case e: IOException => Reason(ReasonCode.StoreUnreadable, "error" -> e.toString)
    case e => Reason.failure(e)
  }

  private def logReason(reason: Reason): Reason = {
    if (QueryWarnings.isNew(reason.toString)) log.warn("Planning without some statistics: {}", reason)
    reason
  }

  /** A read waits, runs, and ends; a query may give it up before it ends. */
  private sealed abstract class State
  private case object Waiting extends State
  private final case class Running(thread: Thread) extends State
  private final case class GivenUp(thread: Thread) extends State
  private case object Ended extends State

  private final class Read[T](body: () => T, store: String) extends Runnable {
    val result = new CompletableFuture[T]()
    private val state = new AtomicReference[State](Waiting)

    override def run(): Unit = {
      val running = Running(Thread.currentThread)
      if (state.compareAndSet(Waiting, running)) {
        try result.complete(body())
        // Fatal errors, too: the query must not wait.
        catch { case e: Throwable => result.completeExceptionally(e) }
        finally if (!state.compareAndSet(running, Ended)) endGivenUp()
        Thread.interrupted() // the thread is used again
      }
    }

    /** Ends the wait for the read. */
    def giveUp(): Unit = state.get match {
      case Waiting => if (!state.compareAndSet(Waiting, Ended)) giveUp()
      case running: Running =>
        // Counted first: if it ends meanwhile, it is not counted down.
        resize(+1)
        givenUp.merge(store, 1, Integer.sum(_, _))
        if (state.compareAndSet(running, GivenUp(running.thread)))
          interrupter.schedule((() => interruptIfRunning()): Runnable, PatienceSeconds, TimeUnit.SECONDS)
        else discount()
      case _ => ()
    }

    private def interruptIfRunning(): Unit = synchronized {
      state.get match {
        case GivenUp(thread) => thread.interrupt()
        case _ => ()
      }
    }

    private def endGivenUp(): Unit = synchronized {
      state.set(Ended)
      discount()
    }

    private def discount(): Unit = {
      resize(-1)
      givenUp.computeIfPresent(store, (_, count) => if (count <= 1) null else count - 1)
    }
  }

  private val replaced = new AtomicInteger()

  /** Replaces a thread that hangs by another one. */
  private def resize(change: Int): Unit = executor.synchronized {
    val size = Threads + math.min(replaced.addAndGet(change), MaxGivenUp)
    if (size > executor.getMaximumPoolSize) {
      executor.setMaximumPoolSize(size)
      executor.setCorePoolSize(size)
    } else {
      executor.setCorePoolSize(size)
      executor.setMaximumPoolSize(size)
    }
  }
}
