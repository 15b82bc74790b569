package org.metastore.spark.pruning

import java.util.concurrent.atomic.AtomicLong

/**
 * Limits the number of values on which the predicates of a query are evaluated.
 *
 * @param most        the number of values
 * @param requireTime raises an error if the query's planning has taken too long
 */
private[spark] final class EvaluationAllowance(most: Long, val requireTime: () => Unit = () => ()) {
  import EvaluationAllowance._

  private val remaining = new AtomicLong(most)

  def isEmpty: Boolean = remaining.get <= 0

  /** The number of values worth reading: a read also brings the values of files that are not evaluated. */
  def worthReading: Long = remaining.get.min(Long.MaxValue / ReadForOne) * ReadForOne

  /** Returns the values one after the other; checks the time once a batch. */
  def inTime[A](values: Seq[A]): Iterator[A] = values.iterator.grouped(BatchSize).flatMap { batch =>
    requireTime()
    batch
  }

  /** Takes this number of values, unless fewer remain. */
  def take(values: Long): Boolean =
    remaining.getAndUpdate(number => if (values <= number) number - values else number) >= values
}

private[spark] object EvaluationAllowance {
  private val ReadForOne = 8
  private val BatchSize = 1024 // values, which take less than a millisecond

  def unlimited: EvaluationAllowance = new EvaluationAllowance(Long.MaxValue)
}
