package org.metastore.spark.statistics.cache

import java.lang.ref.SoftReference
import java.util.{LinkedHashMap => JLinkedHashMap, Map => JMap}

import org.metastore.spark.reason.Reason

/**
 * Decoded statistics of the whole driver, and listings of data files. The least recently used entries go
 * first. Keys name immutable content (an object and its digest), so that entries never become stale. The size
 * is bounded by `spark.metastore.cache.size`, and entries go if the driver runs short of memory.
 */
object StatisticsCache {
  private final class Entry(val value: SoftReference[AnyRef], val weight: Long)

  private val DefaultLimit = 256L << 20
  private val entries = new JLinkedHashMap[String, Entry](64, 0.75f, true)
  private var used = 0L
  private var limit = DefaultLimit

  /** Sets the most bytes of the cache. */
  def limit(bytes: Long): Unit = synchronized {
    limit = bytes
    shrink()
  }

  /** The estimated bytes of all entries. */
  def size: Long = synchronized(used)

  /** Forgets everything: for benchmarks of cold reads. */
  def clear(): Unit = synchronized {
    entries.clear()
    used = 0
  }

  private[spark] def get[T <: AnyRef](key: String): Option[T] = synchronized {
    Option(entries.get(key)).flatMap(entry => Option(entry.value.get.asInstanceOf[T]))
  }

  /** Stores a value of so many bytes, unless it is larger than the whole cache. */
  private[spark] def put(key: String, value: AnyRef, weight: Long): Unit = synchronized {
    remove(key)
    if (weight <= limit) {
      entries.put(key, new Entry(new SoftReference(value), weight))
      used += weight
      shrink()
    }
  }

  private[spark] def remove(key: String): Unit =
    synchronized(Option(entries.remove(key)).foreach(used -= _.weight))

  /** Drops all values whose keys begin so. */
  private[spark] def removeAll(prefix: String): Unit = synchronized {
    val keys = entries.keySet.toArray(Array.empty[String])
    keys.filter(_.startsWith(prefix)).foreach(remove)
  }

  /** Threads that miss at the same time each load; the values are equal. */
  private[spark] def getOrLoad[T <: AnyRef](key: String, weight: T => Long)(load: => T): T =
    get[T](key).getOrElse {
      val value = load
      put(key, value, weight(value))
      value
    }

  private def shrink(): Unit = {
    val oldest = entries.entrySet().iterator()
    while (used > limit && oldest.hasNext) {
      val entry: JMap.Entry[String, Entry] = oldest.next()
      used -= entry.getValue.weight
      oldest.remove()
    }
  }
}

/** A part of immutable objects that is read once and then stays in the driver's cache. */
private[statistics] final case class CacheEntry[T <: AnyRef](key: String, weight: T => Long)(read: => T) {

  /** The value, if it was read before and is still in the cache. */
  def find: Option[T] = StatisticsCache.get[T](key)

  def get(): T = StatisticsCache.getOrLoad(key, weight)(read)
}

private[statistics] object CacheEntry {

  /** The values of entries. Those outside of the cache are read side by side, beside the planning thread. */
  def all[T <: AnyRef](entries: Seq[CacheEntry[T]], budget: Budget): Seq[Either[Reason, T]] = {
    val present = entries.map(_.find)
    val missing = for ((entry, None) <- entries.zip(present)) yield () => entry.get()
    val read = if (missing.isEmpty) Iterator.empty else PlanningPool.run(missing, budget).iterator
    present.map(_.fold(read.next())(Right(_)))
  }

  /** Some things, each with the value of its entry; without those whose entries cannot be read. */
  def readable[S, T <: AnyRef](things: Seq[S], budget: Budget)(entry: S => CacheEntry[T]): Seq[(S, T)] =
    for ((thing, Right(value)) <- things.zip(all(things.map(entry), budget))) yield thing -> value
}

/**
 * The newest values derived from immutable content, as long as memory suffices. One query needs them more
 * than once, and queries repeat.
 */
final class Memo {
  private var memory = new SoftReference(new JLinkedHashMap[Any, AnyRef])

  /** The value of a key, which is made if it is missing; two threads may make it at the same time. */
  def apply[T <: AnyRef](key: Any)(make: => T): T = {
    val stored = synchronized(values.get(key))
    if (stored != null) stored.asInstanceOf[T]
    else {
      val value = make
      keep(key, value)
      value
    }
  }

  private def values: JLinkedHashMap[Any, AnyRef] =
    Option(memory.get).getOrElse(new JLinkedHashMap[Any, AnyRef])

  private def keep(key: Any, value: AnyRef): Unit = synchronized {
    val entries = values
    if (entries.size >= Memo.Most) entries.remove(entries.keySet.iterator.next())
    entries.put(key, value)
    memory = new SoftReference(entries)
  }
}

object Memo {
  private val Most = 32
}
