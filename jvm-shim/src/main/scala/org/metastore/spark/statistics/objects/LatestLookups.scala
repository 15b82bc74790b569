package org.metastore.spark.statistics.objects

import java.lang.ref.WeakReference
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import org.metastore.spark.statistics.cache.StatisticsCache

/**
 * The result of a look-up in a store, for queries shortly after it.
 *
 * @param owner    the owner of the access to the store: with other credentials the result may not be read
 * @param manifest the newest one at that time; `None` where there was none
 * @param change   the last change of statistics by this driver before it
 */
private[statistics] final case class LatestLookup(
    owner: WeakReference[AnyRef],
    manifest: Option[Manifest],
    change: Long,
    begunNanos: Long,
    tookNanos: Long) {

  /** Whether it has all changes of this driver, and is not older than `refreshMillis`. */
  def isRecent(refreshMillis: Long): Boolean = isCurrent && sinceMillis(begunNanos) < refreshMillis

  /**
   * Whether it serves queries while a look-up goes on, because the store is slow. A manifest is never wrong,
   * only old: its files do not change.
   */
  def servesMeanwhile(limitMillis: Long): Boolean =
    isCurrent && manifest.isDefined && TimeUnit.NANOSECONDS.toMillis(tookNanos) >= limitMillis / 2

  private def isCurrent: Boolean = change == LatestLookups.lastChange

  private def sinceMillis(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos)
}

/** The latest look-up in each store, by its folder. */
private[spark] object LatestLookups {
  private val Bytes = 16L << 10 // the manifest itself counts with the log
  private val changes = new AtomicLong

  private[statistics] def lastChange: Long = changes.get

  /** Makes the next query look for the statistics that this driver wrote. */
  def noteChange(): Unit = changes.incrementAndGet()

  private[statistics] def find(root: String, owner: => AnyRef): Option[LatestLookup] =
    last(root).filter(_.owner.get eq owner)

  private[statistics] def keep(root: String, lookup: LatestLookup): Unit = synchronized {
    val isNewest = !last(root).exists(_.begunNanos - lookup.begunNanos >= 0)
    if (isNewest) put(root, lookup)
  }

  /** Notes that a store has not answered within `limitMillis`. */
  private[statistics] def noteTimeout(root: String, limitMillis: Long): Unit = synchronized {
    val waited = TimeUnit.MILLISECONDS.toNanos(limitMillis)
    last(root).filter(_.tookNanos < waited).foreach(lookup => put(root, lookup.copy(tookNanos = waited)))
  }

  private def last(root: String): Option[LatestLookup] = StatisticsCache.get[LatestLookup](keyOf(root))

  private def put(root: String, lookup: LatestLookup): Unit = StatisticsCache.put(keyOf(root), lookup, Bytes)

  private def keyOf(root: String): String = s"lookup:$root"
}
