package org.metastore.spark.statistics.values

import java.nio.ByteBuffer

import scala.collection.mutable

import org.metastore.spark.reason.Optional

/**
 * Values that are looked up in a column.
 *
 * @param values     different values
 * @param rows       the number of rows that each stands for: drawn rows, or all rows with the value
 * @param isComplete whether the column has no other values
 */
final case class LookUps(values: IndexedSeq[Any], rows: IndexedSeq[Long], isComplete: Boolean) {

  /** Converts the values, and drops those without a result; None if no value remains. */
  def collect(convert: Any => Option[Any]): Option[LookUps] = {
    val (converted, weights) =
      (for ((value, weight) <- values.zip(rows); other <- convert(value)) yield other -> weight).unzip
    Optional.when(converted.nonEmpty) {
      LookUps(converted, weights, isComplete && converted.length == values.length)
    }
  }

  /** The mean number of files that a look-up reads, and its standard error. */
  def average(files: IndexedSeq[Int]): (Double, Double) = {
    def weighted(valueOf: Int => Double): Double = {
      val products = for ((count, weight) <- files.zip(rows)) yield valueOf(count) * weight
      products.sum / rows.sum
    }
    val mean = weighted(_.toDouble)
    val spread = weighted(count => (count - mean) * (count - mean))
    (mean, if (isComplete) 0.0 else math.sqrt(spread / rows.sum))
  }
}

object LookUps {

  /** Most look-up values of a column. */
  val Most = 32

  private val Steps = 1 << 16
  private val Stride = 40503 // the golden section of `Steps`

  /** Look-ups of these values; each stands for as many rows as it occurs. */
  def fromValues(values: Seq[Any]): LookUps = counted(values.map(_ -> 1L), isComplete = false)

  /** All values of a histogram if they are few; else those of `Most` rows, spread over the sorted rows. */
  def fromHistogram(bins: Histogram): LookUps = {
    lazy val all = counted(bins.upperEnds, isComplete = true)
    if (bins.counts.indices.forall(bins.isSingle) && all.values.length <= Most) all
    else {
      val (ends, counts) = bins.upperEnds.unzip
      val sums = counts.scanLeft(0L)(_ + _).tail.toArray
      def at(rank: Long): Int = {
        val found = java.util.Arrays.binarySearch(sums, rank)
        if (found >= 0) sums.indexWhere(_ >= rank) else -found - 1
      }
      fromValues((0 until Most).map(draw => ends(at(rank(draw, bins.number)))))
    }
  }

  // Not evenly spaced: files with equal numbers of rows end at evenly spaced ranks too.
  private def rank(draw: Int, rows: Long): Long =
    (BigInt(draw * Steps + (draw * Stride + Steps / 2) % Steps) * rows / (Most * Steps)).toLong + 1

  private def counted(drawn: Seq[(Any, Long)], isComplete: Boolean): LookUps = {
    val counts = mutable.LinkedHashMap.empty[Any, (Any, Long)]
    for ((value, rows) <- drawn) {
      val (_, before) = counts.getOrElse(identity(value), (value, 0L))
      counts(identity(value)) = (value, rows + before)
    }
    val (values, rows) = counts.values.toIndexedSeq.unzip
    LookUps(values, rows, isComplete)
  }

  private def identity(value: Any): Any = value match {
    case bytes: Array[Byte] => ByteBuffer.wrap(bytes)
    case other => other
  }
}
