package org.metastore.spark.estimates

import java.util.Arrays.stream

import scala.collection.concurrent.TrieMap

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.metastore.spark.estimates.DistinctEstimate.expectDistinct
import org.metastore.spark.estimates.EstimatedTypes.{domain, isFinite, isOrdered, isSupported, length}
import org.metastore.spark.pruning.{ScanDecision, ScanEstimate}
import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.columns.{
  CatalystValue, ColumnSizes, ColumnSummary, FileSetStatistics, LongBounds, TableDistinct
}
import org.metastore.spark.statistics.objects.{DoubleOrder, Values}
import org.metastore.spark.statistics.values.ColumnHistogram

/**
 * The statistics of a scan for the optimizer: the rows of its files that satisfy its filter, and the columns
 * of those rows. Spark applies its own estimate of the filter to them once more. The row count is scaled up,
 * so that Spark ends at the right number.
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

  private val survivors: Array[Int] = decision.survivors.stream().toArray

  private val files =
    new PartitionStatistics(analyzed, Array.tabulate(decision.rows.length)(partitions), rows.whole)

  /** The statistics of all files, or of the survivors alone if they are few, and the survivors' indices. */
  private val (statistics, indices) =
    if (survivors.length <= analyzed.files.length / Fewer && analyzed.groups(Nil).nonEmpty)
      (files.among(survivors), survivors.indices.toArray)
    else (files, survivors)

  private def isTrusted(index: Int): Boolean = !decision.contradictoryFiles.get(fileAt(index))

  private def fileAt(index: Int): Int = if (statistics eq files) index else survivors(index)

  private val physicalRows: Double = rows.sum(survivors)

  private def liveRows(file: Int): Double = math.max(0.0, rows(file) - deleted(file).getOrElse(0.0))

  /** The live rows of the files read, with or without a match; None if the rows of one file are unknown. */
  private val readRows: Option[Double] =
    Optional.when(survivors.forall(rows.isKnown))(stream(survivors).mapToDouble(liveRows(_)).sum)

  private lazy val conditions: FilterSelectivity = filter.on { columns =>
    val keys = columns.map(column => (column.key, column.dataType))
    val fromTable = filter.histograms(keys.filterNot((files.isPartition _).tupled))
    val histograms = for {
      column <- columns
      histogram <- histogramOf(column, fromTable)
    } yield column -> histogram
    histograms.toMap
  }

  private def histogramOf(
      column: ColumnKey,
      fromTable: Map[(String, DataType), ColumnHistogram]): Option[ScanHistogram] =
    fromTable.get((column.key, column.dataType)) match {
      case Some(histogram) =>
        Some(ScanHistogram(histogram, isFromTable = true))
      case None =>
        histogramOfFiles(column.key, column.dataType).map(ScanHistogram(_, isFromTable = false))
    }

  private lazy val matching: Option[Double] = readRows.map { read =>
    if (filter.isEmpty || read <= 0) read
    else math.min(read, countMatching())
  }

  private def countMatching(): Double = new MatchingRowCount(
    conditions,
    statistics,
    indices,
    index => rows(fileAt(index)),
    index => liveRows(fileAt(index)),
    rows.sum,
    droppedBy,
    isAncestor).number

  private def droppedBy(conditions: Seq[Expression]): Double = decision.outcome match {
    case Left(_) => 0.0
    case Right(verdict) =>
      val dropping = filter.indicesOf(conditions)
      def isDropped(file: Int): Boolean =
        !decision.survivors.get(file) && dropping(verdict.verdicts.skippedBy(file))
      rows.sum(Array.range(0, decision.rows.length).filter(isDropped(_)))
  }

  /** The rows that remain after filter and semi joins, at least one; None if a file's rows are unknown. */
  private lazy val estimate: Option[Double] = matching.map { number =>
    if (survivors.isEmpty) number
    else math.max(1.0, number * filter.joinShare)
  }

  /** The number of rows that satisfy the filter, with its source. */
  def summary: Option[ScanEstimate] = matching.map { number =>
    val bySize = if (survivors.exists(rows.isBySize)) Seq("size") else Nil
    val sources = (conditions.columns.map(_.source) ++ bySize).distinct.sorted
    val source = if (sources.isEmpty) "row counts" else sources.mkString(", ")
    ScanEstimate(math.round(number), source, isExact)
  }

  private def isExact: Boolean = {
    val areCounted = survivors.forall(file => !rows.isBySize(file) && deleted(file).contains(0.0))
    if (!areCounted) false
    else if (filter.isEmpty) true
    else if (!isAncestor) false
    else survivors.isEmpty || conditions.isExact && conditions.columns.forall(isCounted)
  }

  /** Whether all values of a column are counted in every file. */
  private def isCounted(restricted: ColumnConditions): Boolean = {
    val column = restricted.column
    if (files.isPartition(column.key, column.dataType)) true
    else if (!isRead) false
    else tableDistinct(column.key).exists(_.files == decision.total) && survivors.forall(analyzed.isKnown)
  }

  /** Spark's own estimate of the filter by the columns that it gets, and the columns that it must not get. */
  private lazy val (sparkShare: Double, withheldColumns: Set[String]) =
    if (filter.isEmpty || estimate.isEmpty || !SQLConf.get.cboEnabled) (1.0, Set.empty[String])
    else {
      val share = filter.sparkShare(conditions.estimatedConjuncts, statOfMatching(_, _))
      if (share > Impossible) (share, Set.empty[String])
      else {
        val withheld = Indexed.set(conditions.columns)(_.column.key)
        (shareWithout(withheld), withheld)
      }
    }

  private def shareWithout(withheld: Set[String]): Double =
    filter.sparkShare(
      conditions.estimatedConjuncts,
      (key, dataType) => if (withheld(key)) None else statOfMatching(key, dataType))

  /** The row count for Spark, which its own estimate of the filter reduces to `estimate`. */
  lazy val rowCount: Option[Double] = estimate.map(_ / math.max(sparkShare, Impossible))

  /** The full statistics of a column for Spark, or None: with only some of them Spark estimates zero rows. */
  def column(key: String, dataType: DataType): Option[ColumnStat] =
    if (withheldColumns(key)) None
    // `sparkShare` was computed from these statistics.
    else if (conditions.columnKeys(key)) statOfMatching(key, dataType)
    else statOfMatching(key, dataType).map(withFilteredValues)

  /** Adds the distinct values that Spark subtracts with the rows. */
  private def withFilteredValues(stat: ColumnStat): ColumnStat = {
    val distinct = stat.distinctCount.map(count => roundToWhole(count.toDouble / sparkShare).max(1))
    stat.copy(distinctCount = distinct)
  }

  // Kept, as they are used for `sparkShare` and then by Spark.
  private val statsOfMatching = TrieMap.empty[(String, DataType), Option[ColumnStat]]

  /** Statistics of the rows that satisfy the filter. */
  private def statOfMatching(key: String, dataType: DataType): Option[ColumnStat] =
    if (!isSupported(dataType)) None
    else statsOfMatching.getOrElseUpdate((key, dataType), computeStatOfMatching(key, dataType))

  private def computeStatOfMatching(key: String, dataType: DataType): Option[ColumnStat] = {
    val rows = estimate.getOrElse(physicalRows)
    def isOfColumn(column: ColumnKey): Boolean = column.key == key && column.dataType == dataType
    val stat = conditions.columns.find(restricted => isOfColumn(restricted.column)) match {
      case Some(restricted) =>
        statOfConditions(restricted, rows)
      case None =>
        statOfFiles(key, dataType).map(thin(_, rows))
    }
    filter.joinDistinctCounts.get(key) match {
      case Some(count) =>
        stat.map(_.copy(distinctCount = Some(roundToWhole(math.max(1.0, count)))))
      case None => stat
    }
  }

  private def statOfConditions(restricted: ColumnConditions, rows: Double): Option[ColumnStat] = {
    val dataType = restricted.column.dataType
    val buckets = restricted.remaining.buckets
    if (buckets.isEmpty) None
    else if (!isOrdered(dataType)) Some(statOfRemaining(restricted, rows, (None, None)))
    else {
      val (lo, hi) = (buckets.head.lo, restricted.remaining.last.hi)
      Optional.when(isDescribed(restricted.column) && isFinite(dataType, lo, hi))(statOfRemaining(
        restricted,
        rows,
        (Some(lo), Some(hi))))
    }
  }

  private def isDescribed(column: ColumnKey): Boolean =
    statistics.column(column.key, column.dataType).exists { summary =>
      stream(indices).allMatch(summary.hasStatistics(_))
    }

  private def statOfRemaining(
      restricted: ColumnConditions,
      rows: Double,
      bounds: (Option[Any], Option[Any])): ColumnStat = {
    val column = restricted.remaining
    val dataType = restricted.column.dataType
    val read = statOfFiles(restricted.column.key, dataType)
    def lengthOf(measured: ColumnStat => Option[Long]): Long =
      read.flatMap(measured).getOrElse(length(dataType, -1))
    val share = math.min(1.0, rows / math.max(1.0, column.rows))
    var distinctOfBuckets = 0.0
    for (bucket <- column.buckets)
      distinctOfBuckets += expectDistinct(bucket.distinct, bucket.rows, share)
    val distinct = distinctOfBuckets * repeatedShare(restricted, read)
    statOf(
      math.min(distinct, rows),
      bounds,
      rows * column.nulls / math.max(1.0, column.rows),
      lengthOf(_.avgLen),
      lengthOf(_.maxLen))
  }

  /** The factor for values that several files have: a histogram from bounds counts them in each file. */
  private def repeatedShare(restricted: ColumnConditions, read: Option[ColumnStat]): Double =
    read.flatMap(_.distinctCount) match {
      case Some(count) if !restricted.isFromTable =>
        math.min(1.0, count.toDouble / restricted.unfiltered.distinct)
      case _ => 1.0
    }

  /** Reduces the statistics of all rows to those of some rows, drawn at random. */
  private def thin(stat: ColumnStat, rows: Double): ColumnStat = {
    val read = readRows.getOrElse(physicalRows)
    if (rows >= read) stat
    else {
      val share = rows / read
      val nulls = stat.nullCount.fold(0.0)(_.toDouble)
      def remaining(distinct: Double): Double =
        expectDistinct(distinct, math.max(distinct, read - nulls), share)
      stat.copy(
        distinctCount = stat.distinctCount.map(n => roundToWhole(math.max(1.0, remaining(n.toDouble)))),
        nullCount = stat.nullCount.map(n => roundToWhole(n.toDouble * share)))
    }
  }

  private def histogramOfFiles(key: String, dataType: DataType): Option[ColumnHistogram] =
    for {
      summary <- statistics.column(key, dataType).toOption
      sizes <- statistics.sizes(key, dataType).toOption
      trusted = stream(indices).filter(isTrusted(_)).toArray
      isComplete = statistics.isPartition(key, dataType)
      histogram <- ColumnHistogram.fromFiles(dataType, summary, sizes, trusted, isComplete)
    } yield histogram

  /** The statistics of all rows of the files that are read. */
  private def statOfFiles(key: String, dataType: DataType): Option[ColumnStat] =
    if (survivors.isEmpty || physicalRows <= 0 || !isSupported(dataType)) None
    else for {
      summary <- statistics.column(key, dataType).toOption
      sizes <- statistics.sizes(key, dataType).toOption
      described = stream(indices).filter(file => summary.hasStatistics(file) && isTrusted(file)).toArray
      if isComplete(dataType, summary, sizes, described)
      nonNull = stream(described).filter(file => summary.rows(file) > summary.nulls(file)).toArray
      if nonNull.nonEmpty
      bounds <- if (isOrdered(dataType)) bounds(dataType, summary, nonNull) else Some((None, None))
    } yield stat(key, dataType, summary, sizes, described, nonNull, bounds)

  // If Spark estimates by minimum and maximum, every file that is read must have them.
  private def isComplete(
      dataType: DataType,
      summary: ColumnSummary,
      sizes: ColumnSizes,
      described: Array[Int]): Boolean =
    if (isOrdered(dataType) && described.length != survivors.length) false
    else if (total(described, summary.rows) < EnoughRows * physicalRows) false
    else stream(described).allMatch(file => summary.nulls(file) >= 0 && sizes.distinct(file) >= 0)

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
    def estimated = DistinctEstimate.estimate(
      stream(sizes.distinct).filter(_ >= 0).toArray,
      stream(nonNull).mapToLong(sizes.distinct(_)).toArray,
      rows - nulls,
      tableDistinct(key))
    val distinct = singles(summary, sizes, nonNull).getOrElse(estimated)
    statOf(
      math.min(distinct, limit),
      bounds,
      nulls * scale,
      length(dataType, weighted(summary, sizes, nonNull)),
      length(dataType, stream(nonNull).mapToLong(sizes.maxLen(_)).max.getAsLong.toDouble))
  }

  /** The distinct count if each file has one value, as files of partitions do. */
  private def singles(summary: ColumnSummary, sizes: ColumnSizes, nonNull: Array[Int]): Option[Double] =
    Optional.when(stream(nonNull).allMatch(file => sizes.distinct(file) == 1 && summary.bounds.hasLo(file))) {
      val los = summary.bounds.los
      stream(nonNull).mapToObj[Any](los.key(_)).distinct.count.toDouble
    }

  private def total(files: Array[Int], counts: Array[Long]): Double =
    stream(files).mapToDouble(counts(_).toDouble).sum

  private def first(files: Array[Int], before: (Int, Int) => Boolean): Int =
    stream(files).reduce((best, file) => if (before(file, best)) file else best).getAsInt

  private def weighted(summary: ColumnSummary, sizes: ColumnSizes, nonNull: Array[Int]): Double = {
    def values(file: Int): Double = (summary.rows(file) - summary.nulls(file)).toDouble
    val bytes = stream(nonNull).mapToDouble(file => values(file) * sizes.avgLen(file)).sum
    bytes / stream(nonNull).mapToDouble(values(_)).sum
  }

  private def bounds(
      dataType: DataType,
      summary: ColumnSummary,
      nonNull: Array[Int]): Option[(Option[Any], Option[Any])] =
    if (!stream(nonNull).allMatch(summary.bounds.hasBoth(_))) None
    else {
      val los = summary.bounds.los
      val his = summary.bounds match {
        case numbers: LongBounds =>
          Values.Longs(numbers.hiUpTo(DoubleOrder.NaN - 1))
        case other => other.his
      }
      for {
        lo <- CatalystValue.lo(summary, first(nonNull, (f, best) => los.compare(f, los, best) < 0))
        hi <- CatalystValue.hiNumber(summary, first(nonNull, (f, best) => his.compare(f, his, best) > 0))
        if isFinite(dataType, lo, hi)
      } yield (Some(lo), Some(hi))
    }
}

private object ScanStatistics {

  /** The share of rows with statistics that describe a scan: files appended since may lack them. */
  val EnoughRows = 0.8

  private val Fewer = 16
  private val Impossible = 1e-9

  private def statOf(
      distinct: Double,
      bounds: (Option[Any], Option[Any]),
      nulls: Double,
      avgLen: Long,
      maxLen: Long): ColumnStat =
    ColumnStat(
      distinctCount = Some(roundToWhole(math.max(1, distinct))),
      min = bounds._1,
      max = bounds._2,
      nullCount = Some(roundToWhole(nulls)),
      avgLen = Some(avgLen),
      maxLen = Some(maxLen))

  private def roundToWhole(number: Double): BigInt = BigDecimal(math.rint(number)).toBigInt
}
