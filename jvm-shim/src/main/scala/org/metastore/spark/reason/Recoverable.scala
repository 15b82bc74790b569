package org.metastore.spark.reason

import scala.util.control.NonFatal

/** What a query can do without: also a class or method that another version lacks, and a condition too deep for this thread's stack. */
private[spark] object Recoverable {
  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case NonFatal(_) | _: LinkageError | _: StackOverflowError => Some(failure)
    case _ => None
  }
}
