package org.metastore.spark.statistics.cache

import java.lang.ref.SoftReference
import java.util.{LinkedHashMap => JLinkedHashMap, Map => JMap}

import org.metastore.spark.reason.Reason

/**
 * Decoded statistics of the whole driver, and listings of data files, least recently used first out. Keys name immutable
 * content (an object and its digest), so that entries never become stale. Bounded by `spark.metastore.cache.size`, and given
 * up where the driver runs short of memory.
 */
object StatisticsCache {
  private final class Entry(val value: SoftReference[AnyRef], val weight: Long)

  private val DefaultLimit = 256L << 20
  private val entries = new JLinkedHashMap[String, Entry](64, 0.75f, true)
  private var used = 0L
  private var limit = DefaultLimit

  /** Sets how many bytes may be kept. */
  def limit(bytes: Long): Unit = synchronized {
    limit = bytes
    shrink()
  }

  /** Bytes that are kept now, as estimated. */
  def size: Long = synchronized(used)

  /** Forgets everything: for benchmarks of cold reads. */
  def clear(): Unit = synchronized {
    entries.clear()
    used = 0
  }

  private[spark] def get[T <: AnyRef](key: String): Option[T] = synchronized {
    Option(entries.get(key)).flatMap(entry => Option(entry.value.get.asInstanceOf[T]))
  }

  /** Keeps a value of so many bytes, unless everything else would have to go for it in vain. */
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

  /** The values of entries: those in the cache at once, the others side by side beside the planning thread. */
  def all[T <: AnyRef](wanted: Seq[CacheEntry[T]], budget: Budget): Seq[Either[Reason, T]] = {
    val present = wanted.map(_.find)
    val missing = for ((one, None) <- wanted.zip(present)) yield () => one.get()
    val read = if (missing.isEmpty) Iterator.empty else PlanningPool.run(missing, budget).iterator
    present.map(_.fold(read.next())(Right(_)))
  }

  /** Some things, each with the value of its entry; without those whose entries cannot be read. */
  def readable[S, T <: AnyRef](things: Seq[S], budget: Budget)(entry: S => CacheEntry[T]): Seq[(S, T)] =
    for ((thing, Right(value)) <- things.zip(all(things.map(entry), budget))) yield thing -> value
}

/**
 * Values that were derived from something that does not change, the newest few, as long as memory suffices: one query asks for
 * them more than once, and queries repeat.
 */
final class Memo {
  private var memory = new SoftReference(new JLinkedHashMap[Any, AnyRef])

  /** The value of a key, which is made if it is missing; two threads may make it at the same time. */
  def apply[T <: AnyRef](key: Any)(make: => T): T = {
    val known = synchronized(values.get(key))
    if (known != null) known.asInstanceOf[T]
    else {
      val value = make
      keep(key, value)
      value
    }
  }

  private def values: JLinkedHashMap[Any, AnyRef] =
    Option(memory.get).getOrElse(new JLinkedHashMap[Any, AnyRef])

  private def keep(key: Any, value: AnyRef): Unit = synchronized {
    val kept = values
    if (kept.size >= Memo.Most) kept.remove(kept.keySet.iterator.next())
    kept.put(key, value)
    memory = new SoftReference(kept)
  }
}

object Memo {
  private val Most = 32
}
