package org.metastore.spark.store

import org.metastore.spark.explain.Reason

/**
 * Something of immutable objects that is read once and then stays in the driver's cache.
 *
 * @param key    names its content
 * @param weight its bytes in memory
 */
private[store] final case class CacheEntry[T <: AnyRef](key: String, weight: T => Long)(read: => T) {

  /** What was read before. */
  def find: Option[T] = StatisticsCache.get[T](key)

  def get(): T = StatisticsCache.getOrLoad(key, weight)(read)
}

private[store] object CacheEntry {

  /** All of them: what is in the cache at once, the others side by side beside the planning thread. */
  def all[T <: AnyRef](wanted: Seq[CacheEntry[T]], budget: Budget): Seq[Either[Reason, T]] = {
    val present = wanted.map(_.find)
    val missing = wanted.zip(present).collect { case (one, None) => () => one.get() }
    val read = if (missing.isEmpty) Iterator.empty else PlanningPool.run(missing, budget).iterator
    present.map(_.fold(read.next())(Right(_)))
  }
}
