package org.metastore.spark.reason

/** Computes values that a query does not need. */
private[spark] object Attempt {

  /** The value, or None after a recoverable failure. */
  def orNone[A](compute: => A): Option[A] = recover[Option[A]](Some(compute))(_ => None)

  /** The value, or the result of `fromFailure` after a recoverable failure. */
  def recover[A](compute: => A)(fromFailure: Throwable => A): A =
    try compute
    catch { case Recoverable(failure) => fromFailure(failure) }
}
