package org.metastore.spark.store

import java.lang.ref.SoftReference
import java.util.{LinkedHashMap => JLinkedHashMap}

/**
 * What was made of something that does not change, the newest few, as long as memory suffices: one query asks for it more than
 * once, and queries repeat.
 */
final class Memo {
  private var made = new SoftReference(new JLinkedHashMap[Any, AnyRef])

  /** What was made under a key; two threads may make it at the same time. */
  def apply[T <: AnyRef](key: Any)(make: => T): T =
    synchronized(Option(made.get).flatMap(found => Option(found.get(key)))).fold {
      val value = make
      keep(key, value)
      value
    }(_.asInstanceOf[T])

  private def keep(key: Any, value: AnyRef): Unit = synchronized {
    val found = Option(made.get).getOrElse(new JLinkedHashMap[Any, AnyRef])
    if (found.size >= Memo.Most) found.remove(found.keySet.iterator.next())
    found.put(key, value)
    made = new SoftReference(found)
  }
}

object Memo {
  private val Most = 32
}
