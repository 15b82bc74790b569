package org.metastore.spark.statistics.values

import java.nio.ByteBuffer

import scala.collection.mutable

import org.metastore.spark.reason.Optional

/**
 * Values that are looked up in a column.
 *
 * @param values  no two are the same
 * @param rows    how many rows each stands for: of those drawn, or of all
 * @param isWhole whether there are no others
 */
final case class LookUps(values: IndexedSeq[Any], rows: IndexedSeq[Long], isWhole: Boolean) {

  /** Maps and filters the values; None if none is left. */
  def collect(convert: Any => Option[Any]): Option[LookUps] = {
    val (converted, weights) =
      (for ((value, weight) <- values.zip(rows); other <- convert(value)) yield other -> weight).unzip
    Optional.when(converted.nonEmpty) {
      LookUps(converted, weights, isWhole && converted.length == values.length)
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
    (mean, if (isWhole) 0.0 else math.sqrt(spread / rows.sum))
  }
}

object LookUps {

  /** Most look-up values of a column. */
  val Most = 32

  private val Steps = 1 << 16
  private val Stride = 40503 // the golden section of them

  /** Look-ups of these values; each stands for as many rows as it occurs. */
  def fromValues(values: Seq[Any]): LookUps = counted(values.map(_ -> 1L), isWhole = false)

  /** All values of a histogram where they are few, else the values of rows that are drawn, one of each part of the sorted rows. */
  def ofRows(bins: Histogram): LookUps = {
    lazy val all = counted(bins.upperEnds, isWhole = true)
    if (bins.counts.indices.forall(bins.isLone) && all.values.length <= Most) all
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

  // At even ranks the ends of files that have equally many rows would never be met, or always.
  private def rank(draw: Int, rows: Long): Long =
    (BigInt(draw * Steps + (draw * Stride + Steps / 2) % Steps) * rows / (Most * Steps)).toLong + 1

  private def counted(drawn: Seq[(Any, Long)], isWhole: Boolean): LookUps = {
    val found = mutable.LinkedHashMap.empty[Any, (Any, Long)]
    for ((value, rows) <- drawn)
      found(identity(value)) = (value, rows + found.get(identity(value)).fold(0L)(_._2))
    val (values, rows) = found.values.toIndexedSeq.unzip
    LookUps(values, rows, isWhole)
  }

  private def identity(value: Any): Any = value match {
    case bytes: Array[Byte] => ByteBuffer.wrap(bytes)
    case other => other
  }
}
