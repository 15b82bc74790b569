package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Histogram => SparkHistogram, HistogramBin}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.columns.CatalystValue
import org.metastore.spark.statistics.objects.SummaryRow
import org.metastore.spark.statistics.values.Histogram

/** Converts the summary of a whole table to column statistics as Spark's own ANALYZE stores them. */
object WholeTableStatistics {

  /**
   * The full statistics of a column, or None: with only some of them Spark estimates zero rows. Minimum and
   * maximum are present if they are certain to be values. A column with NaN has none: NaN would be the
   * maximum, and Spark's estimates fail on it.
   *
   * @param bins the histogram of the column and its greatest number of bins, or None
   */
  def column(row: SummaryRow, dataType: DataType, bins: Option[(Histogram, Int)]): Option[ColumnStat] =
    for {
      rows <- row.rows
      nulls <- row.nulls
      distinct <- row.distinct if EstimatedTypes.isSupported(dataType) && row.nans.forall(_ == 0)
      (lo, hi) <- bounds(row, dataType, isEmpty = rows == nulls)
    } yield {
      def length(measured: Option[Double]) = Some(EstimatedTypes.length(dataType, measured.getOrElse(-1.0)))
      val histogram =
        for ((stored, most) <- bins if lo.isDefined) yield sparkHistogram(stored, most, dataType)
      ColumnStat(
        distinctCount = Some(distinct),
        min = lo,
        max = hi,
        nullCount = Some(nulls),
        avgLen = length(row.get[Double]("avg_len")),
        maxLen = length(row.get[Long]("max_len").map(_.toDouble)),
        histogram = histogram)
    }

  private def bounds(
      row: SummaryRow,
      dataType: DataType,
      isEmpty: Boolean): Option[(Option[Any], Option[Any])] =
    if (isEmpty || !EstimatedTypes.isOrdered(dataType)) Some((None, None))
    else
      for {
        least <- row.lo if row.loExact
        most <- row.hi if row.hiExact
        lo = CatalystValue.catalyst(least, dataType)
        hi = CatalystValue.catalyst(most, dataType)
        if EstimatedTypes.isFinite(dataType, lo, hi)
      } yield (Some(lo), Some(hi))

  /** Converts a histogram to bins of equally many values. */
  private def sparkHistogram(stored: Histogram, most: Int, dataType: DataType): SparkHistogram = {
    val count = math.min(most.toLong, stored.number).toInt
    def rank(i: Int): Long = stored.number * i / count
    def edge(rank: Long): Double = {
      val value = CatalystValue.catalyst(stored.at(math.max(rank, 1)).value, dataType)
      EstimationUtils.toDouble(value, dataType)
    }
    val bins = Array.tabulate(count) { i =>
      val (from, until) = (rank(i), rank(i + 1))
      val (lo, hi) = (edge(from), edge(until))
      val distinct = math.round(stored.distinctUpTo(until) - stored.distinctUpTo(from))
      HistogramBin(lo, hi, if (lo == hi) 1 else math.max(1, distinct))
    }
    SparkHistogram(stored.number.toDouble / count, bins)
  }
}
