package org.metastore.spark.statistics

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockJoin, BlockReader, FileJoin, FileList, FileSetStatistics, TableDistinct, TypePromotion
}
import org.metastore.spark.statistics.objects.{Block, Manifest, Snapshot}
import org.metastore.spark.statistics.values.ColumnHistogram
import org.metastore.spark.statistics.zones.{Zone, ZoneJoin, ZoneReader}

/**
 * One version of a table's statistics, as planning needs it. Thread-safe; what was read stays in the driver's
 * cache.
 *
 * {{{
 * StatisticsStore.open(root, hadoopConf).planning(uuid, limit) match {
 *   case Right(statistics) =>
 *     val filter = FilterCompiler.compile(conjuncts, resolver)
 *     filter.evaluate(statistics.forFiles(fileList, filter.columnKeys))
 *   case Left(reason) => ... // plan as without us
 * }
 * }}}
 */
final class TableStatistics private[statistics] (readers: StatisticsReaders) {
  import readers.{blocks => reader, budget}

  def manifest: Manifest = readers.manifest

  /**
   * Digest of the manifest: equal fingerprints mean equal statistics. Belongs into equals/hashCode of pruned
   * scans.
   */
  def fingerprint: String = manifest.fingerprint

  /**
   * Columns of an analyzed snapshot whose distinct values were counted over the table, by key. Never throws.
   */
  def distinct(snapshot: Snapshot): Either[Reason, Map[String, TableDistinct]] = snapshot.summary match {
    case None => Right(Map.empty)
    case Some(ref) =>
      PlanningPool.run(Seq(() => reader.tableDistinct(ref)), budget).head.map { counts =>
        for ((column, count) <- counts if snapshot.columns.isDefinedAt(column))
          yield snapshot.columns(column).key -> count
      }
  }

  /**
   * The stored histograms of columns of an analyzed snapshot. Never throws.
   *
   * @param columns keys and types: they are read side by side
   */
  def histograms(
      snapshot: Snapshot,
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] = {
    val read = CacheEntry.readable(histogramsOf(snapshot, columns), budget.forEstimates)(_.entry)
    val histograms = for ((request, Some(histogram)) <- read) yield request.column -> histogram
    histograms.toMap
  }

  /**
   * Begins to read the objects that `distinct` and `histograms` need, beside other reads; the result waits
   * for them.
   */
  def beginHistograms(snapshot: Snapshot, columns: Seq[(String, DataType)]): () => Unit = {
    val missing = histogramsOf(snapshot, columns).filter(_.entry.find.isEmpty)
    val reads = readers.histograms.firstReads(snapshot, missing.map(_.ordinal))
    val reading = PlanningPool.begin(reads, budget.forEstimates.store, budget.remainingMillis)
    () => {
      reading(budget.forEstimates) // with the time that remains by then
      ()
    }
  }

  private def histogramsOf(snapshot: Snapshot, columns: Seq[(String, DataType)]): Seq[RequestedHistogram] =
    for {
      summary <- snapshot.summary.toSeq
      (key, dataType) <- columns.distinct
      ordinal = snapshot.columns.indexWhere(_.key == key)
      if ordinal >= 0 && TypePromotion.fromEntry(snapshot.columns(ordinal), dataType) == TypePromotion.Full
    } yield {
      val entry = readers.histograms.histogram(snapshot, ordinal, summary, dataType)
      RequestedHistogram((key, dataType), ordinal, entry)
    }

  /**
   * Joins the statistics with the files of a scan; cached by the list's identity. Never throws.
   *
   * @param columns keys and types of the columns that will be needed: they are read meanwhile
   */
  def forFiles(files: FileList, columns: Seq[(String, DataType)]): FileSetStatistics = {
    val query = new QueryColumns(readers)
    val joined = files.findJoin(fingerprint).getOrElse(join(files, query, columns))
    new BlockStatistics(readers, files, joined, query)
  }

  private def join(files: FileList, query: QueryColumns, columns: Seq[(String, DataType)]): FileJoin = {
    val joining = new FileJoiner(reader, readers.zones, manifest, files, budget).begin()
    // A larger block may know few of the files, or none: its columns are read once that is certain.
    val small = manifest.blocks.filter(_.files.rows <= 2L * files.length)
    val (zoned, unzoned) = small.partition(_.zones.nonEmpty)
    query.zones.load(zoned, columns)
    query.bounds.load(unzoned, columns)
    val joined = joining().cachedOrSelf
    if (joined.failure.isEmpty) files.keep(joined)
    joined
  }
}

/** The histogram of a column of a snapshot, read or not. */
private final case class RequestedHistogram(
    column: (String, DataType),
    ordinal: Int,
    entry: CacheEntry[Option[ColumnHistogram]])

/** A large block whose zones may be zones of the scan's files, with its index in the list of blocks. */
private final case class ZonedBlock(index: Int, join: ZoneJoin)

/** Looks for the files of a scan in the blocks of one version of the statistics. */
private[statistics] final class FileJoiner(
    reader: BlockReader,
    zones: ZoneReader,
    manifest: Manifest,
    files: FileList,
    budget: Budget) {

  /** The blocks, the least preferred first. */
  private val blocks = {
    val (full, lessDetailed) = manifest.blocks.partition(_.computed == "full")
    lessDetailed ++ full
  }

  /** Begins to read; the result waits for the end. */
  def begin(): () => FileJoin = {
    val zoned = zonedBlocks
    val checks = for (block <- zoned; check <- block.join.checks) yield block.index -> check
    val checked = PlanningPool.startFor(checks, budget) { case (_, check) => check() }
    val counted = PlanningPool.startFor(zoned, budget)(block => reader.rows(blocks(block.index)))
    val unzoned = byPaths(blocks.indices.diff(zoned.map(_.index)))
    () => {
      // A table may have thousands of blocks: none of them searches the zones of all.
      val zones = mutable.Map.empty[Int, Seq[Int]].withDefaultValue(Nil)
      for (((index, _), Right(passed)) <- checked()) zones(index) ++= passed
      val (complete, incomplete) = counted().partition { case (block, _) =>
        block.join.isComplete(zones(block.index))
      }
      val joinedByZones = for ((block, rows) <- complete) yield {
        val ordinals = block.join.ordinals(zones(block.index))
        block.index -> rows.map(new BlockJoin(blocks(block.index), _, ordinals))
      }
      val joined = joinedByZones ++ unzoned() ++ byPaths(incomplete.map(_._1.index))()
      result(joined.sortBy(_._1).map(_._2))
    }
  }

  private def result(joined: Seq[Either[Reason, BlockJoin]]): FileJoin = {
    val matching = for (Right(block) <- joined if block.matches > 0) yield block
    val failures = for (Left(reason) <- joined) yield reason
    new FileJoin(manifest.fingerprint, files.length, matching.toIndexedSeq, failures.headOption)
  }

  private def zonedBlocks: Seq[ZonedBlock] = {
    val large =
      blocks.indices.filter(i =>
        blocks(i).zones.nonEmpty && math.min(blocks(i).files.rows, Zone.Files) <= files.length)
    val read = PlanningPool.runFor(large, budget)(i => zones.identities(blocks(i)))
    for ((i, Right(Some(identities))) <- read)
      yield ZonedBlock(i, new ZoneJoin(identities, files, blocks(i).files.rows.toInt))
  }

  private def byPaths(indexes: Seq[Int]): () => Seq[(Int, Either[Reason, BlockJoin])] =
    PlanningPool.startFor(indexes, budget)(i => joinByPaths(blocks(i)))

  private def joinByPaths(block: Block): BlockJoin = {
    val blockFiles = reader.files(block)
    val join = new BlockJoin(block, blockFiles.rows, blockFiles.join(files))
    if (join.matches > 0) budget.reserve(blockFiles.weight + files.length * 4L)
    join
  }
}
