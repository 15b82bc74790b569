package org.metastore.spark.store

import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import com.github.luben.zstd.Zstd
import org.slf4j.LoggerFactory

import org.metastore.spark.pruning.PruningFilter

/**
 * Loads the classes and the native library that read statistics, beside the start of a session: the first query would pay for
 * them from its planning timeout, which is about storage.
 */
object WarmUp {
  private val log = LoggerFactory.getLogger("org.metastore.spark.store")
  private val begun = new AtomicBoolean
  @volatile private var done = false

  /** Whether reading is only reading from now on. */
  def isDone: Boolean = done

  /** Begins, once a driver. Never throws. */
  def begin(): Unit = if (begun.compareAndSet(false, true)) {
    val thread = new Thread(() => run(), "metastore-warm-up")
    thread.setDaemon(true)
    thread.start()
  }

  private def run(): Unit =
    try {
      Zstd.compress(Array.emptyByteArray)
      (StatisticsStore.readingClasses ++ PruningFilter.pruningClasses).foreach(c => Class.forName(c.getName, true, c.getClassLoader))
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        log.debug("The classes that read statistics are loaded when they are needed", e)
    } finally done = true
}
