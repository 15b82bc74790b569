package org.metastore.spark.cardinality

import java.nio.ByteBuffer
import java.util.Arrays.stream

import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.types._

import org.metastore.spark.explain.ScanDecision
import org.metastore.spark.store.{BytesBounds, ColumnSizes, ColumnZones, FileStatistics, LongBounds, TableDistinct}
import org.metastore.spark.store.ByteOrder.compare

/**
 * The numbers of the files that a scan reads, not of the table: Spark applies a filter's selectivity to them once more.
 *
 * @param live rows of each file that no delete removes, where the table format tells
 */
final class ScanStatistics(
    files: FileStatistics, decision: ScanDecision, live: Int => Option[Double], tableDistinct: String => Option[TableDistinct]) {
  import ScanStatistics._

  private val kept: Array[Int] = decision.kept.stream().toArray

  /** Of a table of very many files the statistics of those that are read are enough: `places` are theirs. */
  private val (statistics, places) =
    if (kept.length <= files.files.length / Fewer && files.groups(Nil).nonEmpty) (files.among(kept), kept.indices.toArray)
    else (files, kept)

  private def isTrusted(place: Int): Boolean =
    !decision.distrusted.get(if (statistics eq files) place else kept(place))

  private val physicalRows: Double = stream(kept).mapToDouble(f => math.max(0L, decision.rows(f)).toDouble).sum

  /** Live rows of the files read; None if the rows of one are unknown. */
  val rowCount: Option[Double] =
    if (stream(kept).anyMatch(decision.rows(_) < 0)) None
    else Some(stream(kept).mapToDouble(f => live(f).getOrElse(decision.rows(f).toDouble)).sum)

  /**
   * Everything that Spark may be told of a column, or nothing at all: half of it makes Spark estimate zero rows.
   *
   * @param key the column's key in the statistics
   */
  def column(key: String, dataType: DataType): Option[ColumnStat] =
    if (kept.isEmpty || physicalRows <= 0 || !isSupported(dataType)) None
    else for {
      zones <- statistics.column(key, dataType).toOption
      sizes <- statistics.sizes(key, dataType).toOption
      described = stream(places).filter(f => zones.known(f) && isTrusted(f)).toArray
      if isComplete(dataType, zones, sizes, described)
      nonNull = stream(described).filter(f => zones.rows(f) > zones.nulls(f)).toArray
      if nonNull.nonEmpty
      bounds <- if (isOrdered(dataType)) bounds(key, dataType, zones, nonNull) else Some((None, None))
    } yield stat(key, dataType, zones, sizes, described, nonNull, bounds)

  // Where Spark estimates by minimum and maximum, they have to be those of every file that is read.
  private def isComplete(dataType: DataType, zones: ColumnZones, sizes: ColumnSizes, described: Array[Int]): Boolean =
    (!isOrdered(dataType) || described.length == kept.length) &&
      total(described, zones.rows) >= EnoughRows * physicalRows &&
      stream(described).allMatch(f => zones.nulls(f) >= 0 && sizes.distinct(f) >= 0)

  private def stat(
      key: String, dataType: DataType, zones: ColumnZones, sizes: ColumnSizes, described: Array[Int],
      nonNull: Array[Int], bounds: (Option[Any], Option[Any])): ColumnStat = {
    val (rows, nulls) = (total(described, zones.rows), total(described, zones.nulls))
    val scale = rowCount.getOrElse(physicalRows) / rows
    val limit = math.min((rows - nulls) * scale, domain(dataType, bounds))
    val distinct = singles(zones, sizes, nonNull).getOrElse(DistinctOfFiles.estimate(
      stream(sizes.distinct).filter(_ >= 0).toArray, stream(nonNull).mapToLong(sizes.distinct(_)).toArray, rows - nulls,
      tableDistinct(key)))
    ColumnStat(
      distinctCount = Some(whole(math.max(1, math.min(distinct, limit)))),
      min = bounds._1,
      max = bounds._2,
      nullCount = Some(whole(nulls * scale)),
      avgLen = Some(length(dataType, weighted(zones, sizes, nonNull))),
      maxLen = Some(length(dataType, stream(nonNull).mapToLong(sizes.maxLen(_)).max.getAsLong.toDouble)))
  }

  /** Of files that hold one value each, such as those of a partition, the values themselves tell how many there are. */
  private def singles(zones: ColumnZones, sizes: ColumnSizes, nonNull: Array[Int]): Option[Double] =
    if (!stream(nonNull).allMatch(f => sizes.distinct(f) == 1 && zones.bounds.hasLo(f))) None
    else zones.bounds match {
      case b: LongBounds => Some(stream(nonNull).mapToLong(b.lo(_)).distinct.count.toDouble)
      case b: BytesBounds => Some(stream(nonNull).mapToObj[ByteBuffer](f => ByteBuffer.wrap(b.lo(f))).distinct.count.toDouble)
      case _ => None
    }

  private def total(of: Array[Int], counts: Array[Long]): Double = stream(of).mapToDouble(counts(_).toDouble).sum

  private def first(of: Array[Int], before: (Int, Int) => Boolean): Int =
    stream(of).reduce((best, f) => if (before(f, best)) f else best).getAsInt

  private def weighted(zones: ColumnZones, sizes: ColumnSizes, nonNull: Array[Int]): Double = {
    def values(f: Int): Double = (zones.rows(f) - zones.nulls(f)).toDouble
    stream(nonNull).mapToDouble(f => values(f) * sizes.avgLen(f)).sum / stream(nonNull).mapToDouble(values(_)).sum
  }

  private def bounds(
      key: String, dataType: DataType, zones: ColumnZones, nonNull: Array[Int]): Option[(Option[Any], Option[Any])] =
    if (!stream(nonNull).allMatch(f => zones.bounds.hasLo(f) && zones.bounds.hasHi(f))) None
    else {
      val (lowest, highest) = zones.bounds match {
        case b: LongBounds => (first(nonNull, b.lo(_) < b.lo(_)), first(nonNull, b.hi(_) > b.hi(_)))
        case b: BytesBounds =>
          (first(nonNull, (f, g) => compare(b.lo(f), b.lo(g)) < 0), first(nonNull, (f, g) => compare(b.hi(f), b.hi(g)) > 0))
        case _ => (nonNull.head, nonNull.head)
      }
      for {
        lo <- statistics.zone(key, dataType, lowest).flatMap(_.lo)
        hi <- statistics.zone(key, dataType, highest).flatMap(_.hi)
        if isFinite(dataType, lo, hi)
      } yield (Some(lo), Some(hi))
    }
}

private[cardinality] object ScanStatistics {
  /** After an append the rest of the files still describes a scan, if it is most of it. */
  val EnoughRows = 0.8

  private val Fewer = 16

  /** TIMESTAMP_NTZ, TIME and intervals make Spark 4.1's range estimation fail: nothing is said of them. */
  def isSupported(dataType: DataType): Boolean = isOrdered(dataType) || dataType == StringType || dataType == BinaryType

  /** Types whose values Spark estimates by minimum and maximum. */
  def isOrdered(dataType: DataType): Boolean = dataType match {
    case BooleanType | DateType | TimestampType => true
    case _: NumericType => true
    case _ => false
  }

  /** Spark divides by the width of the range: an infinite one makes it fail. */
  def isFinite(dataType: DataType, lo: Any, hi: Any): Boolean = dataType match {
    case FloatType | DoubleType =>
      val width = number(hi) - number(lo)
      !width.isNaN && !width.isInfinite
    case _ => true
  }

  /** How many values the range can hold. */
  def domain(dataType: DataType, bounds: (Option[Any], Option[Any])): Double = (dataType, bounds) match {
    case (ByteType | ShortType | IntegerType | LongType | DateType, (Some(lo), Some(hi))) => number(hi) - number(lo) + 1
    case (BooleanType, (Some(lo), Some(hi))) => if (lo == hi) 1 else 2
    case _ => Double.MaxValue
  }

  private def number(value: Any): Double = value match {
    case n: java.lang.Number => n.doubleValue
    case other => throw new IllegalArgumentException(s"$other is not a number")
  }

  def length(dataType: DataType, measured: Double): Long = dataType match {
    case StringType | BinaryType if measured >= 0 => math.ceil(measured).toLong
    case other => other.defaultSize.toLong
  }

  def whole(number: Double): BigInt = BigDecimal(math.rint(number)).toBigInt
}
