package org.metastore.spark.statistics

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.column.Encoding
import org.apache.parquet.column.page.DataPageV1
import org.apache.parquet.column.values.bitpacking.Packer
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.format.{FileMetaData, PageHeader}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.io.ColumnIOFactory

import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Attempt, Reason, ReasonCode}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool, StatisticsCache}
import org.metastore.spark.statistics.columns.{BlockColumnLoader, BlockReader, ColumnLoader, SummaryAssembler}
import org.metastore.spark.statistics.objects.{
  Block, ChunkPages, ColumnDecoder, DataFileRow, HistogramRow, HadoopFiles, Manifest, ManifestLog,
  ManifestLookup, ManifestReader, ObjectReader, ObjectRef, ObjectRow, ObjectRows, PackedBytes, PackedIntegers,
  ParquetFooter, RanksRef, RowGroup, RowReader, Snapshot, StoreFiles, StoreFolder, SummaryRow, TableFileRow,
  TableIdentity, ValueCount
}
import org.metastore.spark.statistics.values.{HistogramReader, RankReader, ValueCountReader, ValueIndexReader}
import org.metastore.spark.statistics.zones.ZoneReader

/**
 * Reads the statistics of one table: `<table location>/_metastore/` or a folder of a central store. Never
 * writes.
 *
 * Everything read is verified against the manifest's digests before it is decoded, and decoded values stay in
 * the driver's cache. Methods without `Either` raise a [[StatisticsException]] for damaged or too new
 * statistics, and `IOException` where the storage cannot be read: SQL functions let the user see it. Planning
 * uses [[planning]], which never throws.
 */
final class StatisticsStore private (folder: Path, openFiles: () => StoreFiles, refreshMillis: Long) {
  private lazy val files = openFiles()
  private val lookup = new ManifestLookup(folder, files, refreshMillis)
  private lazy val objects = new ObjectReader(new StoreFolder(files, folder, "objects"))
  private lazy val rowReader = new RowReader(objects)
  private lazy val rankReader = new RankReader(objects, rowReader)

  /** Folder of the statistics, for messages. */
  def root: String = folder.toString

  /** The newest manifest, or that of a moment ago; `None` where the table was never analyzed. */
  def manifest(): Option[Manifest] = lookup.find()

  /**
   * The statistics for planning a scan of the table `uuid`.
   *
   * @param tableUuid   uuid of the table that is planned; statistics of another one are refused
   * @param limitMillis the time for reading in this query, from now on; past it columns are unknown
   * @param version     fingerprint of the statistics with which the query began, which are used as long as
   *                    they are in memory; else the newest ones are
   * @param nameMapping the table's name mapping
   */
  def planning(
      tableUuid: String,
      limitMillis: Long,
      version: Option[String] = None,
      nameMapping: Option[String] = None): Either[Reason, TableStatistics] =
    begin(tableUuid, limitMillis, limitMillis, version, nameMapping)(limitMillis)

  /**
   * Begins to look for the statistics that [[planning]] returns, so that several tables are looked up side by
   * side.
   *
   * @param leftMillis  time after which the look-up is given up, even if nobody waits for it
   * @param limitMillis time that the query may wait in all, for reasons
   * @return waits for the statistics; its argument is the time for waiting, and for reading in this query
   *         from then on
   */
  def begin(
      tableUuid: String,
      leftMillis: Long,
      limitMillis: Long,
      version: Option[String] = None,
      nameMapping: Option[String] = None): Long => Either[Reason, TableStatistics] = {
    val cached = version.flatMap(inMemory)
    val lookingUp = cached.fold(beginLookup(leftMillis))(manifest => _ => Right(manifest))
    millis => {
      val budget = new Budget(millis, limitMillis, root)
      Attempt.recover {
        lookingUp(budget).flatMap(manifest => read(tableUuid, budget, manifest.under(nameMapping)))
      }(failure => Left(PlanningPool.explain(failure, budget)))
    }
  }

  private def read(
      tableUuid: String,
      budget: Budget,
      manifest: Manifest): Either[Reason, TableStatistics] = {
    val written = manifest.table.uuid
    if (written != tableUuid) Left(Reason(ReasonCode.OtherTable, "written" -> written, "read" -> tableUuid))
    else Right(new TableStatistics(
      new StatisticsReaders(
        new BlockReader(objects),
        new ZoneReader(objects),
        new ValueCountReader(objects),
        new ValueIndexReader(objects),
        new HistogramReader(objects),
        manifest,
        budget)))
  }

  private def beginLookup(limitMillis: Long): Budget => Either[Reason, Manifest] = {
    val lookingUp = lookup.begin(limitMillis)
    budget =>
      lookingUp(budget).flatMap {
        case None => Left(Reason(ReasonCode.NoStatistics, "table" -> folder.getParent.toString))
        case Some(manifest) =>
          StatisticsCache.put(versionKey(manifest.fingerprint), manifest, StatisticsStore.BytesOfVersion)
          Right(manifest)
      }
  }

  /** The manifest of a version that may carry the digest of a name mapping. */
  private def inMemory(version: String): Option[Manifest] =
    StatisticsCache.get[Manifest](versionKey(version.split(Manifest.UnderMapping).head))

  private def versionKey(fingerprint: String): String = s"version:$root:$fingerprint"

  /** The data files of a block, in order of their ordinals. */
  def dataFiles(block: Block): IndexedSeq[DataFileRow] =
    rowReader.rows(block.files)(ObjectRows.dataFile).sortBy(_.file)

  /** The data files of an analyzed snapshot. */
  def tableFiles(snapshot: Snapshot): IndexedSeq[TableFileRow] =
    rowReader.rows(snapshot.tableFiles)(ObjectRows.tableFile)

  /** The table level of an analyzed snapshot, by column; empty after `NOSCAN`. */
  def tableSummary(snapshot: Snapshot): IndexedSeq[SummaryRow] =
    snapshot.summary.fold(IndexedSeq.empty[SummaryRow])(
      rowReader.rows(_)(ObjectRows.summary)).sortBy(_.column)

  /**
   * The file level of a block: one row per column and data file, by column, then file.
   *
   * @param columns ordinals in the block's columns; `None`: all
   * @param files   ordinals of data files; `None`: all
   */
  def summary(block: Block, columns: Option[Set[Int]], files: Option[Set[Int]]): IndexedSeq[SummaryRow] = {
    def isWanted(row: ObjectRow) = isIn(row.int("column"), columns) && isIn(row.int("file"), files)
    val rows = for {
      part <- block.summary.toIndexedSeq
      if columns.isEmpty || part.columns.exists(columns.get)
      row <- rowReader.rows(part.ref, groupsOf(columns), isWanted)(ObjectRows.summary)
    } yield row
    rows.sortBy(row => (row.column, row.file))
  }

  /**
   * Values of a column in a `frequencies` or `table-frequencies` object, most frequent first; values with
   * their data files in the object's order.
   *
   * @param file ordinal of a data file in the object; `None` at table level
   * @param few  only those in the first row group, which holds the ten most frequent
   */
  def values(ref: ObjectRef, column: Int, file: Option[Int], few: Boolean): IndexedSeq[ValueCount] =
    rowReader.rows(
      ref,
      _.groupsOf(Set(column)).filter(_ == 0 || !few),
      isOf(_, column, file))(ObjectRows.value).flatten

  /** The most frequent value of every column in a `frequencies` or `table-frequencies` object. */
  def mostFrequent(ref: ObjectRef, file: Option[Int]): Map[Int, ValueCount] = {
    val rows = rowReader.rows(ref, _ => Seq(0), isOf(_, file)) { row =>
      row.int("column").get -> ObjectRows.value(row)
    }
    val values = for ((column, Some(value)) <- rows) yield column -> value
    values.reverse.toMap
  }

  /** The histogram of a column in a `histograms` or `table-histograms` object. */
  def histogram(ref: ObjectRef, column: Int, file: Option[Int]): Option[HistogramRow] =
    rowReader.rows(ref, _.groupsOf(Set(column)), isOf(_, column, file))(ObjectRows.histogram).headOption

  /** The histograms of some columns of a table in a `table-histograms` object, by the column's ordinal. */
  def histograms(ref: ObjectRef, columns: Set[Int]): Map[Int, HistogramRow] =
    rowReader.rows(ref, _.groupsOf(columns), row => isIn(row.int("column"), Some(columns))) { row =>
      row.int("column").get -> ObjectRows.histogram(row)
    }.toMap

  /** The histograms of all columns of a data file in a `histograms` object, by the column's ordinal. */
  def histograms(ref: ObjectRef, file: Int): Map[Int, HistogramRow] =
    rowReader.rows(ref, groupsOf(None), isOf(_, Some(file))) { row =>
      row.int("column").get -> ObjectRows.histogram(row)
    }.toMap

  /**
   * Exact quantiles of a column: of p among n values that are neither null nor NaN the value of rank max(1,
   * ceil(p n)).
   *
   * @param ranks  of the snapshot
   * @param column its ordinal in the snapshot
   * @return `None` where the column has no ranks; no value where it has no values
   */
  def quantiles(ranks: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]] =
    rankReader.quantiles(ranks, column, probabilities)

  /** The distinct values of a column in order, each with its last rank; empty without ranks. */
  def listRanks(ranks: Seq[RanksRef], column: Int): Seq[(Any, Long)] = rankReader.all(ranks, column)

  private def isOf(row: ObjectRow, column: Int, file: Option[Int]): Boolean =
    row.int("column").contains(column) && isOf(row, file)

  /** Whether a row is that of a data file, or of a table. */
  private def isOf(row: ObjectRow, file: Option[Int]): Boolean = file.isEmpty || row.int("file") == file

  private def isIn(ordinal: Option[Int], selected: Option[Set[Int]]): Boolean =
    selected.isEmpty || ordinal.exists(selected.get)

  private def groupsOf(columns: Option[Set[Int]])(footer: ParquetFooter): Seq[Int] =
    columns.fold[Seq[Int]](footer.rowGroups.indices)(footer.groupsOf)
}

object StatisticsStore {
  // The weight of a version that is no longer the newest; the newest counts with the log.
  private val BytesOfVersion = 16L << 10

  /**
   * Opens the statistics in the folder `root`, any URI that Hadoop reads. Reads nothing yet.
   *
   * {{{
   * StatisticsStore.open("/warehouse/db/t/_metastore", spark.sessionState.newHadoopConf()).manifest()
   * }}}
   */
  def open(root: String, conf: Configuration): StatisticsStore = {
    val folder = new Path(root)
    open(folder, () => new HadoopFiles(folder.getFileSystem(conf)))
  }

  /** Opens the statistics of a table, in the store that `spark.metastore.store` names or beside the table. */
  def open(table: TableIdentity, store: Option[String], conf: => Configuration): StatisticsStore = {
    val folder = new Path(table.folder(store))
    open(folder, () => table.filesOf(store).getOrElse(new HadoopFiles(folder.getFileSystem(conf))))
  }

  private def open(folder: Path, files: () => StoreFiles): StatisticsStore = {
    val conf = new MetastoreConf(SQLConf.get)
    StatisticsCache.limit(conf.cacheBytes)
    new StatisticsStore(folder, files, conf.refreshMillis)
  }

  /** The classes that read statistics, with those of Parquet whose initializers load hundreds of others. */
  private[spark] def readingClasses: Seq[Class[_]] = Seq(
    ManifestReader.getClass,
    classOf[ManifestLog],
    classOf[ObjectReader],
    ParquetFooter.getClass,
    classOf[FileMetaData],
    classOf[ChunkPages],
    classOf[PageHeader],
    ColumnDecoder.getClass,
    classOf[PackedIntegers],
    PackedBytes.getClass,
    classOf[BlockReader],
    classOf[BlockColumnLoader],
    classOf[RowGroup],
    classOf[ColumnLoader[_]],
    classOf[FileJoiner],
    classOf[BlockStatistics],
    classOf[SummaryAssembler],
    PlanningPool.getClass,
    classOf[DataPageV1],
    classOf[Encoding],
    classOf[Packer],
    classOf[ParquetMetadata],
    classOf[ParquetMetadataConverter],
    classOf[ColumnIOFactory],
    classOf[GroupRecordConverter],
    classOf[ObjectMapper])
}
