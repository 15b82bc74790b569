package org.metastore.spark.statistics.cache

import java.io.IOException

/** The store was not asked: it owes the answer to an earlier request. */
private[statistics] final class StoreNotAskedException
  extends IOException("the store has not answered an earlier request")

/** Reads that take what is in the driver's memory, and ask no store. */
private[statistics] object MemoryOnly {
  private val isOn = new ThreadLocal[Boolean]

  def run[T](read: => T): T = {
    isOn.set(true)
    try read
    finally isOn.remove()
  }

  /** @throws StoreNotAskedException where this thread may not ask the store */
  def requireStore(): Unit = if (isOn.get) throw new StoreNotAskedException
}
