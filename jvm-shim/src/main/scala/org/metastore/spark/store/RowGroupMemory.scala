package org.metastore.spark.store

import java.util.concurrent.locks.ReentrantLock

/**
 * What reading one row group may take of the driver's memory. Everything is asked for before it is allocated: what an object
 * claims of itself is believed only so far.
 *
 * @param obj the object, for messages
 */
private[store] final class RowGroupMemory private (obj: String) {
  import RowGroupMemory._

  private var used = 0L
  private var isAlone = false

  /** Counts bytes that are going to be allocated, or refuses them. */
  def take(bytes: Long): Unit = {
    if (bytes < 0 || bytes > Most - used)
      throw new DamagedObjectException(obj, s"reading it takes more than ${Most >> 20} MB of the driver's memory")
    used += bytes
    if (used > Small && !isAlone) {
      large.lockInterruptibly()
      isAlone = true
    }
  }

  private def free(): Unit = if (isAlone) large.unlock()
}

private[store] object RowGroupMemory {
  private val Most = math.min(1L << 30, Runtime.getRuntime.maxMemory / 4)
  private val Small = Most / 4 // as much may be used by every thread at a time, more by one of them
  private val large = new ReentrantLock()

  /** Lends memory for reading a row group; a thread reads one at a time. */
  def lend[T](obj: String)(read: RowGroupMemory => T): T = {
    val memory = new RowGroupMemory(obj)
    try read(memory)
    finally memory.free()
  }
}
