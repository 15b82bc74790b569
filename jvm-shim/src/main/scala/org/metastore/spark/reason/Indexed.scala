package org.metastore.spark.reason

/** Looks things up: by a key, or the first of them. */
private[spark] object Indexed {

  /** A map from its key to each thing; the last one if several have the same key. */
  def by[K, V](things: Iterable[V])(key: V => K): Map[K, V] = entries(things)(thing => key(thing) -> thing)

  /** A map with an entry for each thing; the last one if several have the same key. */
  def entries[T, K, V](things: Iterable[T])(entry: T => (K, V)): Map[K, V] = {
    val byKey = Map.newBuilder[K, V]
    for (thing <- things) byKey += entry(thing)
    byKey.result()
  }

  /** The values of things, each once. */
  def set[T, V](things: Iterable[T])(value: T => V): Set[V] = {
    val values = Set.newBuilder[V]
    for (thing <- things) values += value(thing)
    values.result()
  }

  /** The index of each thing; the last one if a thing occurs several times. */
  def places[T](things: Iterable[T]): Map[T, Int] = things.zipWithIndex.toMap

  /** The values of all options; None if one of them is empty. */
  def all[A](answers: Seq[Option[A]]): Option[Seq[A]] =
    Optional.when(!answers.contains(None))(answers.flatten)

  /** The first of things that are computed one by one. */
  def first[T](things: Iterator[T]): Option[T] = Optional.when(things.hasNext)(things.next())

  /** The first answer of several things, or None. The things after it are not called. */
  def firstAnswer[T, A](all: Seq[T])(ask: T => Option[A]): Option[A] = first(all.iterator.flatMap(ask(_)))
}
