package org.metastore.spark.reason

import scala.util.control.NonFatal

/**
 * Failures of ours that a query goes on without: also a class or method that another version lacks, a condition too deep for this
 * thread's stack, and more than the driver's memory. An interrupt is none: it cancels the query.
 */
private[spark] object Recoverable {
  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case NonFatal(_) | _: LinkageError | _: VirtualMachineError => Some(failure)
    case _ => None
  }
}
