package org.metastore.spark.reason

/** Optional values. */
private[spark] object Optional {

  /** The value if the condition holds, else None: `Option.when` of Scala 2.13, which Scala 2.12 has not. */
  def when[A](condition: Boolean)(value: => A): Option[A] = if (condition) Some(value) else None
}
