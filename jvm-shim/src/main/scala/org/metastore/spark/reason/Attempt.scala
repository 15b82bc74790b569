package org.metastore.spark.reason

/** Computes what a query can do without. */
private[spark] object Attempt {

  /** The value, or None where computing it fails in a way that is recoverable. */
  def orNone[A](compute: => A): Option[A] =
    try Some(compute)
    catch { case Recoverable(_) => None }
}
