package org.metastore.spark.reason

/** Looks things up: by a key, or the first of them. */
private[spark] object Indexed {

  /** A map from its key to each thing; the last one stands where several have the same key. */
  def by[K, V](things: Iterable[V])(key: V => K): Map[K, V] = {
    val byKey = Map.newBuilder[K, V]
    for (thing <- things) byKey += key(thing) -> thing
    byKey.result()
  }

  /** The first of things that are computed one by one. */
  def first[T](things: Iterator[T]): Option[T] = if (things.hasNext) Some(things.next()) else None

  /** The first answer that one of several gives; None if none gives any. Nobody is asked after it. */
  def firstAnswer[T, A](all: Seq[T])(ask: T => Option[A]): Option[A] = first(all.iterator.flatMap(ask(_)))
}
