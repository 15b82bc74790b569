package org.metastore.spark.sql

/** Statistics describe all rows and files of a moment; of those that are left later, counts are known only here and there. */
object LiveShare {

  /**
   * How many of `part` of `whole` things are among the `live` ones of them; `None` where that cannot be told.
   *
   * @param live how many of the whole are left; `None` where not known
   */
  def of(part: Long, whole: Long, live: Option[Long]): Option[Long] =
    live.filter(left => left == whole || part == 0 || part == whole || left == 0).map(left => math.min(part, left))
}
