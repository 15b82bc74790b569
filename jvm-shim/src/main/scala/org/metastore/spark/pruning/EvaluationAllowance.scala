package org.metastore.spark.pruning

import java.util.concurrent.atomic.AtomicLong

/**
 * How many values of a query may still be put through its predicates.
 *
 * @param requireTime raises where the query's planning has taken too long already
 */
private[spark] final class EvaluationAllowance(most: Long, val requireTime: () => Unit = () => ()) {
  import EvaluationAllowance._

  private val left = new AtomicLong(most)

  def isEmpty: Boolean = left.get <= 0

  /** How many are worth reading: they stand together with those of files that are not asked about. */
  def worthReading: Long = left.get.min(Long.MaxValue / ReadForOne) * ReadForOne

  /** Some values one after the other; asks now and then whether there is time for them. */
  def inTime[A](values: Seq[A]): Iterator[A] = values.iterator.grouped(AskedFor).flatMap { batch =>
    requireTime()
    batch
  }

  /** Takes some, if as many are left. */
  def take(values: Long): Boolean =
    left.getAndUpdate(remaining => if (values <= remaining) remaining - values else remaining) >= values
}

private[spark] object EvaluationAllowance {
  private val ReadForOne = 8
  private val AskedFor = 1024 // values, which take less than a millisecond

  def unlimited: EvaluationAllowance = new EvaluationAllowance(Long.MaxValue)
}
