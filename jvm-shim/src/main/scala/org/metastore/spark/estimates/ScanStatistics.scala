package org.metastore.spark.estimates

import java.nio.ByteBuffer
import java.util.Arrays.stream

import scala.collection.concurrent.TrieMap

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.metastore.spark.pruning.{ScanDecision, ScanEstimate}
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSizes, ColumnSummary, FileSetStatistics, LongBounds, TableDistinct
}
import org.metastore.spark.statistics.objects.{DoubleOrder, Values}
import org.metastore.spark.statistics.values.ColumnHistogram

/**
 * What the optimizer is told of a scan: the rows of its files that satisfy its filter, and the columns of those rows, so that
 * Spark's own estimate of the filter, which it makes of them once more, ends at that number.
 */
final class ScanStatistics(
    analyzed: FileSetStatistics,
    decision: ScanDecision,
    partitions: Int => Map[String, Literal],
    rows: RowCounts,
    deleted: Int => Option[Double],
    tableDistinct: String => Option[TableDistinct],
    filter: FilterRequest,
    isAncestor: Boolean,
    isRead: Boolean) {
  import ScanStatistics._

  private val kept: Array[Int] = decision.survivors.stream().toArray

  private val files =
    new PartitionStatistics(analyzed, Array.tabulate(decision.rows.length)(partitions), rows.whole)

  /** Of a table of very many files the statistics of those that are read are enough: `places` are theirs. */
  private val (statistics, places) =
    if (kept.length <= analyzed.files.length / Fewer && analyzed.groups(Nil).nonEmpty)
      (files.among(kept), kept.indices.toArray)
    else (files, kept)

  private def isTrusted(place: Int): Boolean = !decision.contradictoryFiles.get(fileAt(place))

  private def fileAt(place: Int): Int = if (statistics eq files) place else kept(place)

  private val physicalRows: Double = rows.sum(kept)

  private def liveRows(file: Int): Double = math.max(0.0, rows(file) - deleted(file).getOrElse(0.0))

  /** Live rows of the files read, whether or not they satisfy the filter; None if the rows of one are unknown. */
  private val readRows: Option[Double] =
    if (kept.forall(rows.isKnown)) Some(stream(kept).mapToDouble(liveRows(_)).sum) else None

  private lazy val conditions: FilterSelectivity = filter.on { asked =>
    val ofTable =
      filter.histograms(asked.map(one => (one.key, one.dataType)).filterNot((files.isPartition _).tupled))
    asked.flatMap { one =>
      ofTable.get((one.key, one.dataType)).map(_ -> true).orElse(ofFiles(
        one.key,
        one.dataType).map(_ -> false)).map(one -> _)
    }.toMap
  }

  private lazy val matching: Option[Double] = readRows.map { read =>
    if (filter.isEmpty || read <= 0) read
    else {
      val found = new MatchingRowCount(
        conditions,
        statistics,
        places,
        p => rows(fileAt(p)),
        p => liveRows(fileAt(p)),
        rows.sum,
        droppedBy,
        isAncestor)
      math.min(read, found.number)
    }
  }

  private def droppedBy(conditions: Seq[Expression]): Double = decision.outcome.fold(
    _ => 0.0,
    { verdict =>
      val places = filter.places(conditions)
      rows.sum(Array.range(0, decision.rows.length).filter(f =>
        !decision.survivors.get(f) && places(verdict.verdicts.skippedBy(f))))
    })

  /** The rows that satisfy the filter and that joins look for, for Spark at least one; None where those of a file are unknown. */
  private lazy val estimate: Option[Double] =
    matching.map(number => if (kept.isEmpty) number else math.max(1.0, number * filter.leftByJoins))

  /** The rows that satisfy the filter, and how they are known. */
  def summary: Option[ScanEstimate] = matching.map { number =>
    val sources =
      (conditions.columns.map(_.source) ++ (if (kept.exists(rows.isBySize)) Seq("size") else Nil)).distinct
    ScanEstimate(
      math.round(number),
      if (sources.isEmpty) "row counts" else sources.sorted.mkString(", "),
      isExact)
  }

  private def isExact: Boolean =
    kept.forall(f => !rows.isBySize(f) && deleted(f).contains(0.0)) && (filter.isEmpty || isAncestor) &&
      (kept.isEmpty || filter.isEmpty || conditions.isExact && conditions.columns.forall { one =>
        files.isPartition(one.asked.key, one.asked.dataType) ||
        isRead && tableDistinct(one.asked.key).exists(_.files == decision.total) && kept.forall(
          analyzed.isKnown)
      })

  /** What Spark will take the filter to let through, of the columns that it is told of: all, where it only asks for sizes. */
  private lazy val (sparkShare: Double, withheldColumns: Set[String]) =
    if (filter.isEmpty || estimate.isEmpty || !SQLConf.get.cboEnabled) (1.0, Set.empty[String])
    else {
      val share =
        filter.sparkShare(conditions.estimatedConjuncts, (key, dataType) => statOfMatching(key, dataType))
      if (share > Impossible) (share, Set.empty[String])
      else {
        val named = conditions.columns.map(_.asked.key).toSet
        (
          filter.sparkShare(
            conditions.estimatedConjuncts,
            (key, dataType) => if (named(key)) None else statOfMatching(key, dataType)),
          named)
      }
    }

  /** The rows that Spark starts from, to end at the estimate. */
  lazy val rowCount: Option[Double] = estimate.map(_ / math.max(sparkShare, Impossible))

  /** Everything that Spark may be told of a column, or nothing at all: half of it makes Spark estimate zero rows. */
  def column(key: String, dataType: DataType): Option[ColumnStat] =
    if (withheldColumns(key)) None
    // its share of the filter was asked of these very numbers
    else if (conditions.columnKeys(key)) statOfMatching(key, dataType)
    // what Spark is going to take away with the rows is added
    else statOfMatching(key, dataType).map { stat =>
      stat.copy(distinctCount = stat.distinctCount.map(n => roundToWhole(n.toDouble / sparkShare).max(1)))
    }

  // Spark's share is asked of them before Spark is told.
  private val statsOfMatching = TrieMap.empty[(String, DataType), Option[ColumnStat]]

  /** Of the rows that satisfy the filter. */
  private def statOfMatching(key: String, dataType: DataType): Option[ColumnStat] =
    if (!isSupported(dataType)) None
    else statsOfMatching.getOrElseUpdate(
      (key, dataType), {
        val rows = estimate.getOrElse(physicalRows)
        val stat =
          conditions.columns.find(one => one.asked.key == key && one.asked.dataType == dataType) match {
            case Some(one) => statOfCondition(one, rows)
            case None => ofFilesRead(key, dataType).map(thin(_, rows))
          }
        filter.joinDistinctCounts.get(key).fold(stat)(count =>
          stat.map(_.copy(distinctCount = Some(roundToWhole(math.max(1.0, count))))))
      })

  private def statOfCondition(one: ColumnConditions, rows: Double): Option[ColumnStat] = {
    val (column, dataType) = (one.kept, one.asked.dataType)
    val read = ofFilesRead(one.asked.key, dataType)
    def isTold = statistics.column(one.asked.key, dataType).exists(summary =>
      stream(places).allMatch(summary.hasStatistics(_)))
    if (column.buckets.isEmpty || isOrdered(dataType) && !isTold) None
    else {
      val share = math.min(1.0, rows / math.max(1.0, column.rows))
      val bounds = if (isOrdered(dataType))
        (Some(column.buckets.head.lo), Some(column.buckets.maxBy(_.until).hi))
      else (None, None)
      // Files repeat each other's values, which their buckets do not tell.
      val repeated = if (one.ofTable) 1.0
      else read.flatMap(_.distinctCount).fold(1.0)(n => math.min(1.0, n.toDouble / one.whole.distinct))
      val distinct = column.buckets.iterator.map(bucket =>
        expectDistinct(bucket.distinct, bucket.rows, share)).sum * repeated
      if (isOrdered(dataType) && !isFinite(dataType, bounds._1.get, bounds._2.get)) None
      else Some(statOf(
        math.min(distinct, rows),
        bounds,
        rows * column.nulls / math.max(1.0, column.rows),
        read.flatMap(_.avgLen).getOrElse(length(dataType, -1)),
        read.flatMap(_.maxLen).getOrElse(length(dataType, -1))))
    }
  }

  private def thin(stat: ColumnStat, rows: Double): ColumnStat = {
    val read = readRows.getOrElse(physicalRows)
    if (rows >= read) stat
    else {
      val (share, nulls) = (rows / read, stat.nullCount.fold(0.0)(_.toDouble))
      stat.copy(
        distinctCount = stat.distinctCount.map(n =>
          roundToWhole(math.max(1.0, expectDistinct(n.toDouble, math.max(n.toDouble, read - nulls), share)))),
        nullCount = stat.nullCount.map(n => roundToWhole(n.toDouble * share)))
    }
  }

  private def ofFiles(key: String, dataType: DataType): Option[ColumnHistogram] =
    for {
      summary <- statistics.column(key, dataType).toOption
      sizes <- statistics.sizes(key, dataType).toOption
      trusted = stream(places).filter(isTrusted(_)).toArray
      found <- ColumnHistogram.ofFiles(
        dataType,
        summary,
        sizes,
        trusted,
        isComplete = statistics.isPartition(key, dataType))
    } yield found

  /** Of all rows of the files that are read. */
  private def ofFilesRead(key: String, dataType: DataType): Option[ColumnStat] =
    if (kept.isEmpty || physicalRows <= 0 || !isSupported(dataType)) None
    else for {
      summary <- statistics.column(key, dataType).toOption
      sizes <- statistics.sizes(key, dataType).toOption
      described = stream(places).filter(f => summary.hasStatistics(f) && isTrusted(f)).toArray
      if isComplete(dataType, summary, sizes, described)
      nonNull = stream(described).filter(f => summary.rows(f) > summary.nulls(f)).toArray
      if nonNull.nonEmpty
      bounds <- if (isOrdered(dataType)) bounds(dataType, summary, nonNull) else Some((None, None))
    } yield stat(key, dataType, summary, sizes, described, nonNull, bounds)

  // Where Spark estimates by minimum and maximum, they have to be those of every file that is read.
  private def isComplete(
      dataType: DataType,
      summary: ColumnSummary,
      sizes: ColumnSizes,
      described: Array[Int]): Boolean =
    (!isOrdered(dataType) || described.length == kept.length) &&
      total(described, summary.rows) >= EnoughRows * physicalRows &&
      stream(described).allMatch(f => summary.nulls(f) >= 0 && sizes.distinct(f) >= 0)

  private def stat(
      key: String,
      dataType: DataType,
      summary: ColumnSummary,
      sizes: ColumnSizes,
      described: Array[Int],
      nonNull: Array[Int],
      bounds: (Option[Any], Option[Any])): ColumnStat = {
    val (rows, nulls) = (total(described, summary.rows), total(described, summary.nulls))
    val scale = readRows.getOrElse(physicalRows) / rows
    val limit = math.min((rows - nulls) * scale, domain(dataType, bounds))
    val distinct = singles(summary, sizes, nonNull).getOrElse(DistinctEstimate.estimate(
      stream(sizes.distinct).filter(_ >= 0).toArray,
      stream(nonNull).mapToLong(sizes.distinct(_)).toArray,
      rows - nulls,
      tableDistinct(key)))
    statOf(
      math.min(distinct, limit),
      bounds,
      nulls * scale,
      length(dataType, weighted(summary, sizes, nonNull)),
      length(dataType, stream(nonNull).mapToLong(sizes.maxLen(_)).max.getAsLong.toDouble))
  }

  /** Of files that hold one value each, such as those of a partition, the values themselves tell how many there are. */
  private def singles(summary: ColumnSummary, sizes: ColumnSizes, nonNull: Array[Int]): Option[Double] =
    if (!stream(nonNull).allMatch(f => sizes.distinct(f) == 1 && summary.bounds.hasLo(f))) None
    else Some(summary.bounds.los match {
      case Values.Longs(los) => stream(nonNull).mapToLong(los(_)).distinct.count.toDouble
      case Values.Bytes(los) =>
        stream(nonNull).mapToObj[ByteBuffer](f => ByteBuffer.wrap(los(f))).distinct.count.toDouble
    })

  private def total(of: Array[Int], counts: Array[Long]): Double =
    stream(of).mapToDouble(counts(_).toDouble).sum

  private def first(of: Array[Int], before: (Int, Int) => Boolean): Int =
    stream(of).reduce((best, f) => if (before(f, best)) f else best).getAsInt

  private def weighted(summary: ColumnSummary, sizes: ColumnSizes, nonNull: Array[Int]): Double = {
    def values(f: Int): Double = (summary.rows(f) - summary.nulls(f)).toDouble
    stream(nonNull).mapToDouble(f => values(f) * sizes.avgLen(f)).sum / stream(
      nonNull).mapToDouble(values(_)).sum
  }

  private def bounds(
      dataType: DataType,
      summary: ColumnSummary,
      nonNull: Array[Int]): Option[(Option[Any], Option[Any])] =
    if (!stream(nonNull).allMatch(f => summary.bounds.hasLo(f) && summary.bounds.hasHi(f))) None
    else {
      val los = summary.bounds.los
      val his = summary.bounds match {
        case numbers: LongBounds => Values.Longs(numbers.hiUpTo(DoubleOrder.NaN - 1))
        case other => other.his
      }
      for {
        lo <- CatalystValue.lo(summary, first(nonNull, (f, best) => los.compare(f, los, best) < 0))
        hi <- CatalystValue.hiNumber(summary, first(nonNull, (f, best) => his.compare(f, his, best) > 0))
        if isFinite(dataType, lo, hi)
      } yield (Some(lo), Some(hi))
    }
}

private[estimates] object ScanStatistics {

  /** After an append the rest of the files still describes a scan, if it is most of it. */
  val EnoughRows = 0.8

  private val Fewer = 16
  private val Impossible = 1e-9

  /** Distinct values among a share of rows, drawn at random (A. F. Cardenas, 1975). */
  def expectDistinct(distinct: Double, rows: Double, share: Double): Double =
    if (share >= 1 || distinct <= 0) distinct
    else distinct * -math.expm1(math.max(1.0, rows / distinct) * math.log1p(-share))

  /** TIMESTAMP_NTZ, TIME and intervals make Spark 4.1's range estimation fail: nothing is said of them. */
  def isSupported(dataType: DataType): Boolean =
    isOrdered(dataType) || dataType == StringType || dataType == BinaryType

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

  private def statOf(
      distinct: Double,
      bounds: (Option[Any], Option[Any]),
      nulls: Double,
      avgLen: Long,
      maxLen: Long): ColumnStat =
    ColumnStat(
      Some(roundToWhole(math.max(1, distinct))),
      bounds._1,
      bounds._2,
      Some(roundToWhole(nulls)),
      Some(avgLen),
      Some(maxLen))

  /** How many values the range can hold. */
  def domain(dataType: DataType, bounds: (Option[Any], Option[Any])): Double = (dataType, bounds) match {
    case (ByteType | ShortType | IntegerType | LongType | DateType, (Some(lo), Some(hi))) =>
      number(hi) - number(lo) + 1
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

  def roundToWhole(number: Double): BigInt = BigDecimal(math.rint(number)).toBigInt
}

/** Distinct values of some of a table's files, from their counts and the table's. */
private[estimates] object DistinctEstimate {
  private val Sample = 2000
  private val Steps = 24 // of a range of a million: no more than a millionth off

  /** Between the largest file's count (files repeat each other) and the sum of all (no value in two files). */
  def estimate(all: Array[Long], kept: Array[Long], values: Double, table: Option[TableDistinct]): Double = {
    val largest = stream(kept).max.getAsLong.toDouble
    val sum = total(kept)
    val between = table match {
      case _ if kept.length == 1 => sum
      case Some(known) if known.files <= kept.length => known.distinct
      case Some(known) => fromTable(all, kept, known)
      case None if sum * 2 > values => sum
      case None => largest
    }
    math.max(largest, math.min(between, sum))
  }

  private def fromTable(all: Array[Long], kept: Array[Long], table: TableDistinct): Double = {
    val sampled = sample(all)
    val (alike, share) = (new CountGroups(sampled), table.files.toDouble / sampled.length)
    val largest = stream(all).max.getAsLong.toDouble
    if (total(sampled) * share <= table.distinct * 1.01) total(kept)
    else {
      val floor = math.log(math.max(table.distinct, largest) * (1 + 1e-9))
      var (low, high) = (floor, floor + math.log(1e6))
      for (_ <- 0 until Steps) {
        val middle = (low + high) / 2
        if (alike.expectValues(share, math.exp(middle)) < table.distinct) low = middle else high = middle
      }
      val keptSample = sample(kept)
      math.min(
        table.distinct,
        new CountGroups(keptSample).expectValues(kept.length.toDouble / keptSample.length, math.exp(high)))
    }
  }

  /** Files by their counts, of which a table mostly has few: a logarithm of each for every file and step takes long. */
  private final class CountGroups(counts: Array[Long]) {
    private val sorted = counts.sorted
    private val ends =
      sorted.indices.filter(i => i + 1 == sorted.length || sorted(i) != sorted(i + 1)).toArray
    private val files = ends.indices.map(i => ends(i) - (if (i == 0) -1 else ends(i - 1))).toArray

    /** Values of the universe that appear in any of the files. */
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
