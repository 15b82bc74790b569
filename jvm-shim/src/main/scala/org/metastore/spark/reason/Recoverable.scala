package org.metastore.spark.reason

import scala.util.control.NonFatal

/**
 * Failures of ours after which a query goes on. A class or method that another version lacks, a condition too
 * deep for the thread's stack, and a lack of memory are such failures, too. An interrupt is not: it cancels
 * the query.
 */
private[spark] object Recoverable {
  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case NonFatal(_) | _: LinkageError | _: VirtualMachineError => Some(failure)
    case _ => None
  }
}
