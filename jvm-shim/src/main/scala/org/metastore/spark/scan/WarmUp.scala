package org.metastore.spark.scan

import java.util.concurrent.atomic.AtomicBoolean

import com.github.luben.zstd.Zstd
import org.slf4j.LoggerFactory

import org.metastore.spark.pruning.FilterCompiler
import org.metastore.spark.reason.Attempt
import org.metastore.spark.statistics.StatisticsStore

/** Loads what reads statistics beside the start of a session: the first query would pay from its planning timeout. */
object WarmUp {
  private val log = LoggerFactory.getLogger("org.metastore.spark.scan")
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
    try Attempt.recover(load()) { failure =>
        log.debug("The classes that read statistics are loaded when they are needed", failure)
      }
    finally done = true

  private def load(): Unit = {
    Zstd.compress(Array.emptyByteArray)
    for (loaded <- StatisticsStore.readingClasses ++ FilterCompiler.pruningClasses)
      Class.forName(loaded.getName, true, loaded.getClassLoader)
  }
}
