package org.metastore.spark.estimates

import java.util.Arrays.stream

import org.metastore.spark.statistics.columns.TableDistinct

/** Estimates the distinct values of some of a table's files, from the files' and the table's counts. */
private[estimates] object DistinctEstimate {
  private val Sample = 2000
  private val Steps = 24 // halve a factor of a million until the error is a millionth

  /** The distinct values of a share of the rows, drawn at random (A. F. Cardenas, 1975). */
  def expectDistinct(distinct: Double, rows: Double, share: Double): Double =
    if (share >= 1 || distinct <= 0) distinct
    else distinct * -math.expm1(math.max(1.0, rows / distinct) * math.log1p(-share))

  /**
   * The distinct values of the files read: at least the largest file's count (the files repeat each other),
   * at most the sum of all counts (no value is in two files).
   */
  def estimate(all: Array[Long], read: Array[Long], values: Double, table: Option[TableDistinct]): Double = {
    val largest = stream(read).max.getAsLong.toDouble
    val sum = total(read)
    val expected = table match {
      case _ if read.length == 1 => sum
      case Some(counted) if counted.files <= read.length => counted.distinct
      case Some(counted) =>
        fromTable(all, read, counted)
      case None if sum * 2 > values => sum
      case None => largest
    }
    math.max(largest, math.min(expected, sum))
  }

  /** Finds a universe of values from which random files have the table's count, and draws the files read. */
  private def fromTable(all: Array[Long], read: Array[Long], table: TableDistinct): Double = {
    val sampled = sample(all)
    val (groups, share) = (new CountGroups(sampled), table.files.toDouble / sampled.length)
    val largest = stream(all).max.getAsLong.toDouble
    if (total(sampled) * share <= table.distinct * 1.01) total(read)
    else {
      val floor = math.log(math.max(table.distinct, largest) * (1 + 1e-9))
      var (low, high) = (floor, floor + math.log(1e6))
      for (_ <- 0 until Steps) {
        val middle = (low + high) / 2
        if (groups.expectValues(share, math.exp(middle)) < table.distinct) low = middle
        else high = middle
      }
      val readSample = sample(read)
      math.min(
        table.distinct,
        new CountGroups(readSample).expectValues(read.length.toDouble / readSample.length, math.exp(high)))
    }
  }

  /** Groups files with equal counts: there are few different ones, and a logarithm a file takes long. */
  private final class CountGroups(counts: Array[Long]) {
    private val sorted = counts.sorted
    private val ends =
      sorted.indices.filter(i => i + 1 == sorted.length || sorted(i) != sorted(i + 1)).toArray
    private val endsBefore = -1 +: ends
    private val files = ends.indices.map(i => ends(i) - endsBefore(i)).toArray

    /** The values of the universe that are expected in any of the files. */
    def expectValues(share: Double, universe: Double): Double = {
      var (missed, i) = (0.0, 0)
      while (i < ends.length) {
        missed += files(i) * math.log1p(-math.min(sorted(ends(i)) / universe, 1 - 1e-12))
        i += 1
      }
      universe * -math.expm1(share * missed)
    }
  }

  private def total(counts: Array[Long]): Double = stream(counts).asDoubleStream.sum

  private def sample(counts: Array[Long]): Array[Long] =
    if (counts.length <= Sample) counts
    else Array.tabulate(Sample)(i => counts((i.toLong * counts.length / Sample).toInt))
}
