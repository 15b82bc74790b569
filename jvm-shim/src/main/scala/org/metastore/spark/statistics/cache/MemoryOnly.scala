package org.metastore.spark.statistics.cache

import java.io.IOException

/** No request was sent to the store, because it has not answered an earlier one. */
private[statistics] final class StoreNotAskedException
  extends IOException("the store has not answered an earlier request")

/** Reads from the driver's memory alone, without a request to the store. */
private[statistics] object MemoryOnly {
  private val isOn = new ThreadLocal[Boolean]

  def run[T](read: => T): T = {
    isOn.set(true)
    try read
    finally isOn.remove()
  }

  /** @throws StoreNotAskedException if this thread may not send a request to the store */
  def requireStore(): Unit = if (isOn.get) throw new StoreNotAskedException
}
