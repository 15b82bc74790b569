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
    val read = CacheEntry.readable(histogramsOf(snapshot, columns), budget.ofEstimates)(_.entry)
    val histograms = for ((wanted, Some(histogram)) <- read) yield wanted.column -> histogram
    histograms.toMap
  }

  /**
   * Begins to read the objects that `distinct` and `histograms` need, beside other reads; the result waits
   * for them.
   */
  def beginHistograms(snapshot: Snapshot, columns: Seq[(String, DataType)]): () => Unit = {
    val missing = histogramsOf(snapshot, columns).filter(_.entry.find.isEmpty)
    val reads = readers.histograms.firstReads(snapshot, missing.map(_.ordinal))
    val reading = PlanningPool.begin(reads, budget.ofEstimates.store, budget.remainingMillis)
    () => {
      reading(budget.ofEstimates) // what is left for waiting then
      ()
    }
  }

  private def histogramsOf(snapshot: Snapshot, columns: Seq[(String, DataType)]): Seq[WantedHistogram] =
    for {
      summary <- snapshot.summary.toSeq
      (key, dataType) <- columns.distinct
      ordinal = snapshot.columns.indexWhere(_.key == key)
      if ordinal >= 0 && TypePromotion.fromEntry(snapshot.columns(ordinal), dataType) == TypePromotion.Full
    } yield {
      val entry = readers.histograms.histogram(snapshot, ordinal, summary, dataType)
      WantedHistogram((key, dataType), ordinal, entry)
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
    val (zoned, others) = small.partition(_.zones.nonEmpty)
    query.zones.load(zoned, columns)
    query.bounds.load(others, columns)
    val joined = joining().cachedOrSelf
    if (joined.failure.isEmpty) files.keep(joined)
    joined
  }
}

/** The histogram of a column of a snapshot, read or not. */
private final case class WantedHistogram(
    column: (String, DataType),
    ordinal: Int,
    entry: CacheEntry[Option[ColumnHistogram]])

/** A large block whose zones may be zones of the scan's files, with its index in the list of blocks. */
private final case class ZonedBlock(place: Int, join: ZoneJoin)

/** Looks for the files of a scan in the blocks of one version of the statistics. */
private[statistics] final class FileJoiner(
    reader: BlockReader,
    zones: ZoneReader,
    manifest: Manifest,
    files: FileList,
    budget: Budget) {

  /** The blocks, the least preferred first. */
  private val blocks = {
    val (full, others) = manifest.blocks.partition(_.computed == "full")
    others ++ full
  }

  /** Begins to read; the result waits for the end. */
  def begin(): () => FileJoin = {
    val zoned = zonedBlocks
    val checks = for (block <- zoned; check <- block.join.checks) yield block.place -> check
    val checked = PlanningPool.startFor(checks, budget) { case (_, check) => check() }
    val counted = PlanningPool.startFor(zoned, budget)(block => reader.rows(blocks(block.place)))
    val others = byPaths(blocks.indices.diff(zoned.map(_.place)))
    () => {
      // A table may have thousands of blocks: none of them searches the zones of all.
      val zones = mutable.Map.empty[Int, Seq[Int]].withDefaultValue(Nil)
      for (((place, _), Right(passed)) <- checked()) zones(place) ++= passed
      val (complete, incomplete) = counted().partition { case (block, _) =>
        block.join.isComplete(zones(block.place))
      }
      val joinedByZones = for ((block, rows) <- complete) yield {
        val ordinals = block.join.ordinals(zones(block.place))
        block.place -> rows.map(new BlockJoin(blocks(block.place), _, ordinals))
      }
      val joined = joinedByZones ++ others() ++ byPaths(incomplete.map(_._1.place))()
      result(joined.sortBy(_._1).map(_._2))
    }
  }

  private def result(joined: Seq[Either[Reason, BlockJoin]]): FileJoin = {
    val known = for (Right(block) <- joined if block.matches > 0) yield block
    val failures = for (Left(reason) <- joined) yield reason
    new FileJoin(manifest.fingerprint, files.length, known.toIndexedSeq, failures.headOption)
  }

  private def zonedBlocks: Seq[ZonedBlock] = {
    val large =
      blocks.indices.filter(place =>
        blocks(place).zones.nonEmpty && math.min(blocks(place).files.rows, Zone.Files) <= files.length)
    val read = PlanningPool.runFor(large, budget)(place => zones.identities(blocks(place)))
    for ((place, Right(Some(identities))) <- read)
      yield ZonedBlock(place, new ZoneJoin(identities, files, blocks(place).files.rows.toInt))
  }

  private def byPaths(places: Seq[Int]): () => Seq[(Int, Either[Reason, BlockJoin])] =
    PlanningPool.startFor(places, budget)(place => joinByPaths(blocks(place)))

  private def joinByPaths(block: Block): BlockJoin = {
    val known = reader.files(block)
    val join = new BlockJoin(block, known.rows, known.join(files))
    if (join.matches > 0) budget.reserve(known.weight + files.length * 4L)
    join
  }
}
