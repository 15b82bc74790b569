package org.metastore.spark.reason

/** Computes what a query can do without. */
private[spark] object Attempt {

  /** The value, or None where computing it fails in a way that is recoverable. */
  def orNone[A](compute: => A): Option[A] = recover[Option[A]](Some(compute))(_ => None)

  /** The value, or what is made of the failure where computing it fails in a way that is recoverable. */
  def recover[A](compute: => A)(fromFailure: Throwable => A): A =
    try compute
    catch { case Recoverable(failure) => fromFailure(failure) }
}
