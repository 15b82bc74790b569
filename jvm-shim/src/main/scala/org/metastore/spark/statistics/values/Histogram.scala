package org.metastore.spark.statistics.values

import org.metastore.spark.statistics.objects.{HistogramRow, SummaryRow}

/**
 * The bins of a histogram: bin i holds `counts(i)` finite values from `edges(i)` to `edges(i + 1)`.
 *
 * @param below how many values are -Infinity: they have the first ranks
 * @param above how many values are Infinity: they have the last ranks
 */
final case class Histogram(
    kind: String,
    edges: IndexedSeq[Any],
    counts: IndexedSeq[Long],
    distincts: IndexedSeq[Long],
    errors: IndexedSeq[Long],
    below: Long = 0,
    above: Long = 0) {
  private val ends = counts.scanLeft(0L)(_ + _).tail
  private val finite: Long = counts.sum

  /** How many values there are, infinite ones among them. */
  val number: Long = below + finite + above

  /** The upper edge of each bin with its count, in order; infinite values make bins of their own. */
  def upperEnds: IndexedSeq[(Any, Long)] = {
    val lowest = if (below > 0) IndexedSeq(Double.NegativeInfinity -> below) else IndexedSeq.empty
    val highest = if (above > 0) IndexedSeq(Double.PositiveInfinity -> above) else IndexedSeq.empty
    lowest ++ edges.drop(1).zip(counts) ++ highest
  }

  /** Whether a bin is known to hold as many values as it says. */
  def isExact(bin: Int): Boolean = Seq(bin, bin + 1).forall(errors.lift(_).contains(0L))

  /** The same with fewer bins, each made of neighbours. */
  def coarsen(bins: Int): Histogram =
    if (bins >= counts.length) this
    else {
      val starts =
        (if (kind == Histogram.EquiHeight) byRank(bins)
         else (0 to bins).map(i => (i.toLong * counts.length / bins).toInt)).distinct
      val spans = starts.zip(starts.tail)
      def joined(of: IndexedSeq[Long]) =
        if (of.isEmpty) of else spans.map { case (from, until) => of.slice(from, until).sum }
      copy(
        edges = starts.map(edges),
        counts = joined(counts),
        distincts = joined(distincts),
        errors = if (errors.isEmpty) errors else starts.map(errors))
    }

  /**
   * The value of a rank, an infinite one perhaps: numbers are taken to be spread evenly over their bin, of others the nearer
   * edge is taken.
   */
  def at(rank: Long): Quantile =
    if (rank <= below) Quantile(Double.NegativeInfinity, Some(0))
    else if (rank > below + finite) Quantile(Double.PositiveInfinity, Some(0))
    else atFinite(rank - below)

  private def atFinite(rank: Long): Quantile = {
    val place = ends.indexWhere(_ >= rank)
    val count = counts(place)
    val inside = rank - (ends(place) - count)
    if (rank == 1) Quantile(edges(place), errors.headOption)
    else {
      val value = if (isLone(place) || inside == count) edges(place + 1)
      else within(edges(place), edges(place + 1), inside, count)
      Quantile(value, if (errors.isEmpty) None else Some(error(place, inside, count)))
    }
  }

  /** About how many distinct values there are up to a rank of the finite ones: spread evenly over each bin. */
  def distinctUpTo(rank: Long): Double =
    counts.indices.iterator.map { bin =>
      val inside = math.min(math.max(rank - (ends(bin) - counts(bin)), 0L), counts(bin))
      if (inside == 0) 0.0 else distincts.lift(bin).getOrElse(counts(bin)).toDouble * inside / counts(bin)
    }.sum

  /** The values of the ranks at each hundredth. */
  def percentiles: IndexedSeq[Any] =
    (0 to Histogram.Percent).map(i => at(Histogram.rankOf(i, number)).value)

  /** What tells ranks of its column: bins of equal width do not where percentiles were kept. */
  def forRanks(row: SummaryRow): Histogram =
    if (kind == Histogram.EquiHeight) this else Histogram.fromPercentiles(row).getOrElse(this)

  private def error(place: Int, inside: Long, count: Long): Long = {
    val (below, above) = (errors(place), errors(place + 1))
    if (isLone(place)) Seq(below - inside + 1, above - (count - inside), 0L).max
    else if (inside == count) above
    else edges(place) match {
      case _: Array[Byte] => if (2 * inside > count) count - inside + above else inside + below
      case _ => math.max(inside + below, count - inside + above)
    }
  }

  private def within(lower: Any, upper: Any, inside: Long, count: Long): Any = (lower, upper) match {
    case (lo: Long, hi: Long) => (BigInt(lo) + ((BigInt(hi) - lo) * inside + count - 1) / count).toLong
    case (lo: Double, hi: Double) =>
      if ((hi - lo).isInfinite || (hi - lo).isNaN) hi else lo + (hi - lo) * (inside.toDouble / count)
    case (lo, hi) => if (2 * inside > count) hi else lo
  }

  /** Whether a bin holds its upper edge alone. */
  private[statistics] def isLone(place: Int): Boolean =
    kind == Histogram.EquiHeight && (distincts.lift(place).contains(1L) || ((
      edges(place),
      edges(place + 1)) match {
      case (lo: Array[Byte], hi: Array[Byte]) => lo.sameElements(hi)
      case (lo, hi) => lo == hi
    }))

  private def byRank(bins: Int): IndexedSeq[Int] = {
    val sums = counts.scanLeft(0L)(_ + _)
    (0 until bins).map(i => sums.indexWhere(_ >= BigInt(i) * finite / bins)) :+ counts.length
  }
}

/** The value of a rank, and by how many values that rank may be off; `None` where that is not known. */
final case class Quantile(value: Any, error: Option[Long])

object Histogram {
  private val Percent = 100
  val EquiHeight = "equi_height"

  /** The bins of a stored histogram of a column, with what the format leaves out. */
  def fromRow(stored: HistogramRow, row: SummaryRow): Option[Histogram] = {
    val (below, above) = row.infinities.getOrElse((0L, 0L))
    val finite = row.numbers.getOrElse(0L) - below - above
    val edges = if (stored.edges.nonEmpty) stored.edges else equalWidths(row, stored.counts.length)
    if (edges.length < 2) None
    else {
      val bins = edges.length - 1
      val implied = (0 to bins).map(i => (BigInt(i) * finite / bins).toLong)
      val counts = if (stored.counts.nonEmpty) stored.counts
      else implied.zip(implied.tail).map { case (from, to) => to - from }
      Some(Histogram(stored.kind, edges, counts, stored.distincts, stored.errors, below, above))
    }
  }

  /** The histogram of a column of which all values are infinite: it has no bins. */
  def fromInfinities(row: SummaryRow): Option[Histogram] = row.infinities.collect {
    case (below, above) if below + above > 0 && row.numbers.contains(below + above) =>
      Histogram(
        EquiHeight,
        IndexedSeq.empty,
        IndexedSeq.empty,
        IndexedSeq.empty,
        IndexedSeq.empty,
        below,
        above)
  }

  /** The percentiles of a column as bins: infinite values are in these. */
  def fromPercentiles(row: SummaryRow): Option[Histogram] =
    if (row.percentiles.length < 2) None
    else {
      val ranks = 0L +: (1 to Percent).map(rankOf(_, row.numbers.getOrElse(0L)))
      val counts = ranks.zip(ranks.tail).map { case (from, to) => to - from }
      Some(Histogram(EquiHeight, row.percentiles, counts, IndexedSeq.empty, IndexedSeq.empty))
    }

  private def rankOf(percent: Int, number: Long): Long =
    math.max(1L, ((BigInt(percent) * number + Percent - 1) / Percent).toLong)

  private def equalWidths(row: SummaryRow, bins: Int): IndexedSeq[Any] = (row.lo, row.hi) match {
    case (Some(lo: Long), Some(hi: Long)) if bins > 0 =>
      (0 to bins).map(i => (BigInt(lo) + (BigInt(hi) - lo) * i / bins).toLong)
    case (Some(lo: Double), Some(hi: Double)) if bins > 0 =>
      (0 to bins).map(i => if (i == 0) lo else if (i == bins) hi else lo + (hi / bins - lo / bins) * i)
    case _ => IndexedSeq.empty
  }
}
