package org.metastore.spark.store

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.column.page.DataPageV1
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.MetastoreConf
import org.metastore.spark.explain.Reason

/**
 * Reads the statistics of one table: `<table location>/_metastore/` or a folder of a central store. Never writes.
 *
 * Everything read is verified against the manifest's digests before it is decoded, and decoded values stay in the driver's
 * cache. Methods without `Either` raise a [[StatisticsException]] for damaged or too new statistics, and `IOException` where the
 * storage cannot be read: SQL functions let the user see it. Planning uses [[planning]], which never throws.
 */
trait StatisticsStore {

  /** Folder of the statistics, for messages. */
  def root: String

  /** The newest manifest; `None` where the table was never analyzed. */
  def manifest(): Option[Manifest]

  /**
   * The statistics for planning a scan of the table `uuid`.
   *
   * @param tableUuid   uuid of the table that is planned; statistics of another one are refused
   * @param limitMillis what reading may take in this query, from now on; past it columns are unknown
   * @param version     fingerprint of the statistics that the query began with: these, as long as they are remembered. `None`,
   *                    or forgotten: the newest ones
   */
  final def planning(tableUuid: String, limitMillis: Long, version: Option[String] = None): Either[Reason, TableStatistics] =
    begin(tableUuid, limitMillis, version)(limitMillis)

  /**
   * As [[planning]], of several tables side by side: begins to look for the statistics, and returns what waits for them.
   *
   * @param limitMillis after which the look-up is given up, waited for or not
   * @return for how long to wait, and to read in this query from then on, in milliseconds, to the statistics
   */
  def begin(tableUuid: String, limitMillis: Long, version: Option[String] = None): Long => Either[Reason, TableStatistics]

  /** The data files of a block, in order of their ordinals. */
  def dataFiles(block: Block): IndexedSeq[DataFileRow]

  /** The data files of an analyzed snapshot. */
  def tableFiles(snapshot: Snapshot): IndexedSeq[TableFileRow]

  /** The table level of an analyzed snapshot, by column; empty after `NOSCAN`. */
  def tableSummary(snapshot: Snapshot): IndexedSeq[SummaryRow]

  /** Sketches of the table level, by column. */
  def tableSketches(snapshot: Snapshot): IndexedSeq[SketchRow]

  /**
   * The file level of a block: one row per column and data file, by column, then file.
   *
   * @param columns ordinals in the block's columns; `None`: all
   * @param files   ordinals of data files; `None`: all
   */
  def summary(block: Block, columns: Option[Set[Int]], files: Option[Set[Int]]): IndexedSeq[SummaryRow]

  /**
   * Values of a column in a `frequencies` or `table-frequencies` object, most frequent first; in the object's order those of
   * which it tells where they live.
   *
   * @param file ordinal of a data file in the object; `None` at table level
   * @param few  only those in the first row group, which holds the ten most frequent
   */
  def values(ref: ObjectRef, column: Int, file: Option[Int], few: Boolean): IndexedSeq[ValueCount]

  /** The most frequent value of every column in a `frequencies` or `table-frequencies` object. */
  def mostFrequent(ref: ObjectRef, file: Option[Int]): Map[Int, ValueCount]

  /**
   * Exact quantiles of a column: of p among n values that are neither null nor NaN the value of rank max(1, ceil(p n)).
   *
   * @param ranks  of the snapshot
   * @param column its ordinal in the snapshot
   * @return `None` where the column has no ranks; no value where it has no values
   */
  def quantiles(ranks: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]]

  /** The distinct values of a column in order, each with its last rank; empty without ranks. */
  def listRanks(ranks: Seq[RanksRef], column: Int): Seq[(Any, Long)]

  /** The histogram of a column in a `histograms` or `table-histograms` object. */
  def histogram(ref: ObjectRef, column: Int, file: Option[Int]): Option[HistogramRow]

  /** The histograms of all columns of a data file in a `histograms` object, by the column's ordinal. */
  def histograms(ref: ObjectRef, file: Int): Map[Int, HistogramRow]

  /** Sketches in a detail object of data files. */
  def sketches(ref: ObjectRef): IndexedSeq[SketchRow]
}

object StatisticsStore {

  /**
   * Opens the statistics kept in the folder `root`, any URI that Hadoop reads; reads nothing yet.
   *
   * {{{
   * StatisticsStore.open("/warehouse/db/t/_metastore", spark.sessionState.newHadoopConf()).manifest()
   * }}}
   */
  def open(root: String, conf: Configuration): StatisticsStore = {
    StatisticsCache.limit(new MetastoreConf(SQLConf.get).cacheBytes)
    new HadoopStatisticsStore(new Path(root), conf)
  }

  /**
   * Where the statistics of a table are kept.
   *
   * @param location  the table's location
   * @param store     `spark.metastore.store`, if it is set
   * @param format    `iceberg`, `delta`, `hudi` or `parquet`
   * @param tableUuid uuid of the table
   */
  def rootOf(location: String, store: Option[String], format: String, tableUuid: String): String =
    store.filter(_.nonEmpty) match {
      case Some(uri) => s"${uri.stripSuffix("/")}/$format-$tableUuid"
      case None => s"${location.stripSuffix("/")}/_metastore"
    }

  /** The classes that read statistics, for who loads them before the first query. */
  private[spark] def readingClasses: Seq[Class[_]] = Seq(ManifestReader.getClass, classOf[ManifestLog], classOf[ObjectReader],
    ParquetFooter.getClass, classOf[CompactThrift], RowGroupMemory.getClass, classOf[ChunkPages], PageHead.getClass,
    ColumnDecoder.getClass, LevelRuns.getClass, classOf[PackedIntegers], PackedBytes.getClass, classOf[BlockReader],
    classOf[BlockColumnLoader], classOf[RowGroup], classOf[ColumnLoader[_]], classOf[FileJoiner], classOf[BlockStatistics],
    classOf[SummaryAssembler], PlanningPool.getClass, classOf[DataPageV1], classOf[ObjectMapper])
}
