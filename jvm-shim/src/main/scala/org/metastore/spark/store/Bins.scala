package org.metastore.spark.store

/**
 * The bins of a histogram: bin i holds `counts(i)` values from `edges(i)` to `edges(i + 1)`.
 *
 * @param distincts empty where not known
 * @param errors    by how many values the rank of each edge may be off; empty where not known
 */
final case class Histogram(
    kind: String, edges: IndexedSeq[Any], counts: IndexedSeq[Long], distincts: IndexedSeq[Long], errors: IndexedSeq[Long]) {
  private val ends = counts.scanLeft(0L)(_ + _).tail

  val number: Long = counts.sum

  /** Whether a bin is known to hold as many values as it says. */
  def isExact(bin: Int): Boolean = Seq(bin, bin + 1).forall(errors.lift(_).contains(0L))

  /** The same with fewer bins, each made of neighbours. */
  def coarsen(bins: Int): Histogram =
    if (bins >= counts.length) this
    else {
      val starts = (if (kind == Histogram.EquiHeight) byRank(bins) else (0 to bins).map(i => (i.toLong * counts.length / bins).toInt)).distinct
      val spans = starts.zip(starts.tail)
      def joined(of: IndexedSeq[Long]) = if (of.isEmpty) of else spans.map { case (from, until) => of.slice(from, until).sum }
      Histogram(kind, starts.map(edges), joined(counts), joined(distincts), if (errors.isEmpty) errors else starts.map(errors))
    }

  /** The value of a rank: numbers are taken to be spread evenly over their bin, of others the nearer edge is taken. */
  def at(rank: Long): Quantile = {
    val place = ends.indexWhere(_ >= rank)
    val count = counts(place)
    val inside = rank - (ends(place) - count)
    if (rank == 1) Quantile(edges(place), errors.headOption)
    else {
      val value = if (isLone(place) || inside == count) edges(place + 1) else within(edges(place), edges(place + 1), inside, count)
      Quantile(value, if (errors.isEmpty) None else Some(error(place, inside, count)))
    }
  }

  /** The values of the ranks at each hundredth. */
  def percentiles: IndexedSeq[Any] =
    (0 to Histogram.Percent).map(i => at(Histogram.rankOf(i, number)).value)

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
    case (lo: Double, hi: Double) => if ((hi - lo).isInfinite || (hi - lo).isNaN) hi else lo + (hi - lo) * (inside.toDouble / count)
    case (lo, hi) => if (2 * inside > count) hi else lo
  }

  /** Whether a bin holds its upper edge alone. */
  private[store] def isLone(place: Int): Boolean =
    kind == Histogram.EquiHeight && (distincts.lift(place).contains(1L) || ((edges(place), edges(place + 1)) match {
      case (lo: Array[Byte], hi: Array[Byte]) => lo.sameElements(hi)
      case (lo, hi) => lo == hi
    }))

  private def byRank(bins: Int): IndexedSeq[Int] = {
    val sums = counts.scanLeft(0L)(_ + _)
    (0 until bins).map(i => sums.indexWhere(_ >= BigInt(i) * number / bins)) :+ counts.length
  }
}

/** The value of a rank, and by how many values that rank may be off; `None` where that is not known. */
final case class Quantile(value: Any, error: Option[Long])

object Histogram {
  private val Percent = 100
  val EquiHeight = "equi_height"

  /** The bins of a stored histogram of a column, with what the format leaves out. */
  def of(stored: HistogramRow, row: SummaryRow): Option[Histogram] = {
    val number = row.rows.flatMap(rows => row.nulls.map(rows - _ - row.nans.getOrElse(0L))).getOrElse(0L)
    val edges = if (stored.edges.nonEmpty) stored.edges else equalWidths(row, stored.counts.length)
    if (edges.length < 2) None
    else {
      val bins = edges.length - 1
      val implied = (0 to bins).map(i => (BigInt(i) * number / bins).toLong)
      val counts = if (stored.counts.nonEmpty) stored.counts else implied.zip(implied.tail).map { case (from, to) => to - from }
      Some(Histogram(stored.kind, edges, counts, stored.distincts, stored.errors))
    }
  }

  /** The percentiles of a column as bins. */
  def ofPercentiles(row: SummaryRow): Option[Histogram] = of(HistogramRow(EquiHeight, row.percentiles, IndexedSeq.empty, IndexedSeq.empty), row)
    .map(bins => bins.copy(counts = (0L +: (1 to Percent).map(rankOf(_, bins.number))).sliding(2).map(ends => ends(1) - ends(0)).toIndexedSeq))

  private def rankOf(percent: Int, number: Long): Long =
    math.max(1L, ((BigInt(percent) * number + Percent - 1) / Percent).toLong)

  private def equalWidths(row: SummaryRow, bins: Int): IndexedSeq[Any] = (row.lo, row.hi) match {
    case (Some(lo: Long), Some(hi: Long)) if bins > 0 => (0 to bins).map(i => (BigInt(lo) + (BigInt(hi) - lo) * i / bins).toLong)
    case (Some(lo: Double), Some(hi: Double)) if bins > 0 =>
      (0 to bins).map(i => if (i == 0) lo else if (i == bins) hi else lo + (hi / bins - lo / bins) * i)
    case _ => IndexedSeq.empty
  }
}
