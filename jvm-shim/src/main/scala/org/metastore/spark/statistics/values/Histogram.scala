package org.metastore.spark.statistics.values

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.objects.{
  HistogramRow, ObjectReader, ObjectRef, ObjectRows, RanksRef, RowGroup, RowReader, Snapshot, SummaryRow,
  ValueCount
}

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
  def ofRanks(row: SummaryRow): Histogram =
    if (kind == Histogram.EquiHeight) this else Histogram.ofPercentiles(row).getOrElse(this)

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
  def of(stored: HistogramRow, row: SummaryRow): Option[Histogram] = {
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
  def ofInfinities(row: SummaryRow): Option[Histogram] = row.infinities.collect {
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
  def ofPercentiles(row: SummaryRow): Option[Histogram] =
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

/** Reads how the values of a column are spread over the rows of an analyzed snapshot. */
private[statistics] final class HistogramReader(objects: ObjectReader) {
  import HistogramReader._

  private val rows = new RowReader(objects)

  /** None in the option where no more is kept than counts. */
  def histogram(
      snapshot: Snapshot,
      column: Int,
      summary: ObjectRef,
      dataType: DataType): CacheEntry[Option[ColumnHistogram]] =
    CacheEntry[Option[ColumnHistogram]](
      s"histogram:${summary.name}:${summary.footerSha256}:$column:${dataType.catalogString}",
      _.fold(16L)(_.weight)) {
      val row = rows.rows(summary, _.groupsOf(Set(column))) { row =>
        if (row.int("column").contains(column)) Some(ObjectRows.summary(row)) else None
      }.headOption
      row.flatMap(known =>
        ColumnHistogram.of(
          dataType,
          known,
          readValues(snapshot, column, known, dataType),
          bins(snapshot, column, known)))
    }

  private def bins(snapshot: Snapshot, column: Int, row: SummaryRow): Option[Histogram] =
    if (row.frequencies.contains("complete") && row.distinct.exists(_ <= MostValues)) None
    else snapshot.histograms.flatMap { ref =>
      rows.rows(ref, _.groupsOf(Set(column))) { stored =>
        if (stored.int("column").contains(column)) Some(ObjectRows.histogram(stored)) else None
      }.headOption
    }.flatMap(Histogram.of(_, row)).orElse(Histogram.ofPercentiles(row))

  /** The values whose counts are kept: of very many the most frequent ones, of lists that are cut by hashes the first ten. */
  private def readValues(
      snapshot: Snapshot,
      column: Int,
      row: SummaryRow,
      dataType: DataType): IndexedSeq[ValueCount] =
    if (!row.frequencies.exists(_ != "none")) IndexedSeq.empty
    else {
      val all = snapshot.frequencies.filter(_.columns.contains(column)).map(_.ref)
      val isShort = row.distinct.exists(_ <= MostValues) || !snapshot.distribution.contains(column)
      if (isShort)
        all.iterator.flatMap(values(_, column, dataType, few = false)).take(MostValues).toIndexedSeq
      else snapshot.frequencies.headOption.toIndexedSeq.flatMap(head =>
        values(head.ref, column, dataType, few = true))
    }

  private def values(
      ref: ObjectRef,
      column: Int,
      dataType: DataType,
      few: Boolean): IndexedSeq[ValueCount] = {
    val field = ValueCountReader.fieldOf(dataType)
    val groups = objects.footer(ref).groupsOf(Set(column)).filter(_ == 0 || !few)
    var found = 0
    groups.flatMap { group =>
      if (found >= MostValues) IndexedSeq.empty
      else RowGroup.read(objects, ref, group, Seq("column", field, "frequency", "error")) { part =>
        val (columns, counts, errors) =
          (part.longs("column", -1), part.longs("frequency", 0), part.longs("error", 0))
        val value: Int => Any = field match {
          case "value_binary" =>
            val bytes = part.bytes(field)
            i => bytes(i)
          case "value_double" =>
            val doubles = part.doubles(field)
            i => doubles(i)
          case _ =>
            val longs = part.longs(field, 0)
            i => longs(i)
        }
        val places = columns.indices.filter(i => columns(i) == column).take(MostValues - found)
        found += places.length
        places.map(i => ValueCount(value(i), counts(i), errors(i), Map.empty)).filter(_.value != null)
      }
    }.toIndexedSeq
  }
}

private object HistogramReader {
  private val MostValues = 1 << 15 // of a column, for estimates
}

/** Looks up which value stands at a rank, in `table-ranks` objects. */
private[statistics] final class RankReader(objects: ObjectReader, rows: RowReader) {

  /** See [[StatisticsStore.quantiles]]. */
  def quantiles(all: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]] = {
    val parts = all.filter(_.columns.contains(column)).sortBy(_.valuesBefore(column))
    parts.lastOption.map { last =>
      val number = lastRank(last.ref, column)
      probabilities.map(p =>
        number.flatMap(n => atRank(parts, column, math.max(1L, math.ceil(p * n).toLong))))
    }
  }

  /** See [[StatisticsStore.listRanks]]. */
  def all(parts: Seq[RanksRef], column: Int): Seq[(Any, Long)] = for {
    part <- parts.filter(_.columns.contains(column)).sortBy(_.valuesBefore(column))
    group <- groups(part.ref, column)
    (rank, value) <- read(part.ref, column, group)
  } yield value -> rank

  private def atRank(parts: Seq[RanksRef], column: Int, rank: Long): Option[Any] = {
    val part = parts.filter(_.valuesBefore(column) < rank).last.ref
    firstFrom(part, column, rank, groups(part, column))
  }

  /** The value of the first row from a rank on, by halving the row groups that may have it. */
  private def firstFrom(ref: ObjectRef, column: Int, rank: Long, groups: IndexedSeq[Int]): Option[Any] =
    if (groups.isEmpty) None
    else {
      val (before, from) = groups.splitAt((groups.size - 1) / 2)
      val found = read(ref, column, from.head)
      if (found.lastOption.forall(_._1 < rank)) firstFrom(ref, column, rank, from.tail)
      else if (found.head._1 < rank) found.find(_._1 >= rank).map(_._2)
      else firstFrom(ref, column, rank, before).orElse(Some(found.head._2))
    }

  private def lastRank(ref: ObjectRef, column: Int): Option[Long] =
    groups(ref, column).lastOption.flatMap(group => read(ref, column, group).lastOption.map(_._1))

  private def read(ref: ObjectRef, column: Int, group: Int): IndexedSeq[(Long, Any)] =
    rows.rows(ref, _ => Seq(group)) { row =>
      val value =
        row.long("value_long").orElse[Any](row.double("value_double")).orElse(row.bytes("value_binary"))
      value.filter(_ => row.int("column").contains(column)).flatMap(v => row.long("rank").map(_ -> v))
    }

  private def groups(ref: ObjectRef, column: Int): IndexedSeq[Int] =
    objects.footer(ref).groupsOf(Set(column)).toIndexedSeq
}
