package org.metastore.spark.store

import java.lang.ref.SoftReference
import java.util.{LinkedHashMap => JLinkedHashMap, Map => JMap}

/**
 * Decoded statistics of the whole driver, least recently used first out. Keys name immutable content (an object and its
 * digest), so that entries never become stale. Bounded by `spark.metastore.cache.size`, and given up where the driver runs
 * short of memory.
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

  private[store] def get[T <: AnyRef](key: String): Option[T] = synchronized {
    Option(entries.get(key)).flatMap(entry => Option(entry.value.get)).map(_.asInstanceOf[T])
  }

  private[store] def put(key: String, value: AnyRef, weight: Long): Unit = synchronized {
    val before = entries.put(key, new Entry(new SoftReference(value), weight))
    used += weight - Option(before).fold(0L)(_.weight)
    shrink()
  }

  /** Threads that miss at the same time each load; the values are equal. */
  private[store] def getOrLoad[T <: AnyRef](key: String, weight: T => Long)(load: => T): T =
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
