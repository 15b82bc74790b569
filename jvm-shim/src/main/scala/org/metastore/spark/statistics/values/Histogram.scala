package org.metastore.spark.statistics.values

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.{HistogramRow, SummaryRow}

/**
 * The bins of a histogram: bin i holds `counts(i)` finite values from `edges(i)` to `edges(i + 1)`.
 *
 * @param errors for each edge, the number of ranks that it may be off
 * @param below  the number of values that are -Infinity: they have the first ranks
 * @param above  the number of values that are Infinity: they have the last ranks
 */
final case class Histogram(
    edges: IndexedSeq[Any],
    counts: IndexedSeq[Long],
    distincts: IndexedSeq[Long],
    errors: IndexedSeq[Long],
    below: Long = 0,
    above: Long = 0) {
  private val ends = counts.scanLeft(0L)(_ + _).tail
  private val finite: Long = counts.sum

  /** The number of values, with infinite ones. */
  val number: Long = below + finite + above

  def hasInfinities: Boolean = below + above > 0

  /** The upper edge of each bin with its count, in order; infinite values make bins of their own. */
  def upperEnds: IndexedSeq[(Any, Long)] = {
    val lowest = if (below > 0) IndexedSeq(Double.NegativeInfinity -> below) else IndexedSeq.empty
    val highest = if (above > 0) IndexedSeq(Double.PositiveInfinity -> above) else IndexedSeq.empty
    lowest ++ edges.drop(1).zip(counts) ++ highest
  }

  /** Whether the count of a bin is exact. */
  def isExact(bin: Int): Boolean = Seq(bin, bin + 1).forall(errors.lift(_).contains(0L))

  /** The histogram with at most `bins` bins, each made of neighbours. */
  def coarsen(bins: Int): Histogram =
    if (bins >= counts.length) this
    else {
      val starts = startsByRank(bins).distinct
      val spans = starts.zip(starts.tail)
      def sumSpans(values: IndexedSeq[Long]) =
        if (values.isEmpty) values
        else for ((from, until) <- spans) yield values.slice(from, until).sum
      copy(
        edges = starts.map(edges),
        counts = sumSpans(counts),
        distincts = sumSpans(distincts),
        errors = if (errors.isEmpty) errors else starts.map(errors))
    }

  /**
   * The value of a rank, which may be infinite. Numbers are assumed to be spread evenly over their bin; for
   * other types the nearer edge is returned.
   */
  def at(rank: Long): Quantile =
    if (rank <= below) Quantile(Double.NegativeInfinity, Some(0))
    else if (rank > below + finite) Quantile(Double.PositiveInfinity, Some(0))
    else atFinite(rank - below)

  private def atFinite(rank: Long): Quantile = {
    val bin = ends.indexWhere(_ >= rank)
    val count = counts(bin)
    val inside = rank - (ends(bin) - count)
    if (rank == 1) Quantile(edges(bin), errors.headOption)
    else {
      val value = if (isSingle(bin) || inside == count) edges(bin + 1)
      else interpolate(edges(bin), edges(bin + 1), inside, count)
      Quantile(value, Optional.when(errors.nonEmpty)(error(bin, inside, count)))
    }
  }

  /** An estimate of the distinct values up to a rank of the finite values, spread evenly over each bin. */
  def distinctUpTo(rank: Long): Double = {
    var distinct = 0.0
    for (bin <- counts.indices) {
      val inside = math.min(math.max(rank - (ends(bin) - counts(bin)), 0L), counts(bin))
      val distinctOfBin = distincts.lift(bin).getOrElse(counts(bin))
      if (inside > 0) distinct += distinctOfBin.toDouble * inside / counts(bin)
    }
    distinct
  }

  /** The values of the ranks at each hundredth. */
  def percentiles: IndexedSeq[Any] =
    (0 to Histogram.Percent).map(i => at(Histogram.rankOf(i, number)).value)

  private def error(bin: Int, inside: Long, count: Long): Long = {
    val (below, above) = (errors(bin), errors(bin + 1))
    if (isSingle(bin)) Seq(below - inside + 1, above - (count - inside), 0L).max
    else if (inside == count) above
    else edges(bin) match {
      case _: Array[Byte] => if (2 * inside > count) count - inside + above else inside + below
      case _ => math.max(inside + below, count - inside + above)
    }
  }

  private def interpolate(lower: Any, upper: Any, inside: Long, count: Long): Any = (lower, upper) match {
    case (lo: Long, hi: Long) => (BigInt(lo) + ((BigInt(hi) - lo) * inside + count - 1) / count).toLong
    case (lo: Double, hi: Double) =>
      if ((hi - lo).isInfinite || (hi - lo).isNaN) hi
      else lo + (hi - lo) * (inside.toDouble / count)
    case (lo, hi) => if (2 * inside > count) hi else lo
  }

  /** Whether all values of a bin are its upper edge. */
  private[statistics] def isSingle(bin: Int): Boolean =
    distincts.lift(bin).contains(1L) || ((edges(bin), edges(bin + 1)) match {
      case (lo: Array[Byte], hi: Array[Byte]) => lo.sameElements(hi)
      case (lo, hi) => lo == hi
    })

  private def startsByRank(bins: Int): IndexedSeq[Int] = {
    val sums = counts.scanLeft(0L)(_ + _)
    (0 until bins).map(i => sums.indexWhere(_ >= BigInt(i) * finite / bins)) :+ counts.length
  }
}

/** The value of a rank, and the number of ranks that it may be off; None if that is unknown. */
final case class Quantile(value: Any, error: Option[Long])

object Histogram {
  private val Percent = 100

  /** The only kind of histogram in the format. */
  val EquiHeight = "equi_height"

  /** The stored histogram of a column, with the infinite values, which no bin holds; None for other kinds. */
  def fromRow(stored: HistogramRow, row: SummaryRow): Option[Histogram] = {
    val bins = stored.counts.length
    if (stored.kind != EquiHeight || bins == 0 || stored.edges.length != bins + 1) None
    else {
      val (below, above) = row.infinities.getOrElse((0L, 0L))
      Some(Histogram(stored.edges, stored.counts, stored.distincts, stored.errors, below, above))
    }
  }

  /** The histogram of a column with only infinite values: it has no bins. */
  def fromInfinities(row: SummaryRow): Option[Histogram] = row.infinities.collect {
    case (below, above) if below + above > 0 && row.numbers.contains(below + above) =>
      Histogram(IndexedSeq.empty, IndexedSeq.empty, IndexedSeq.empty, IndexedSeq.empty, below, above)
  }

  /** The percentiles of a column as bins, which include infinite values. */
  def fromPercentiles(row: SummaryRow): Option[Histogram] =
    if (row.percentiles.length < 2) None
    else {
      val ranks = 0L +: (1 to Percent).map(rankOf(_, row.numbers.getOrElse(0L)))
      val counts = for ((from, to) <- ranks.zip(ranks.tail)) yield to - from
      Some(Histogram(row.percentiles, counts, IndexedSeq.empty, IndexedSeq.empty))
    }

  private def rankOf(percent: Int, number: Long): Long =
    math.max(1L, ((BigInt(percent) * number + Percent - 1) / Percent).toLong)
}
