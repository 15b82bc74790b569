package org.metastore.spark.statistics

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
 * One version of a table's statistics, as planning needs it. Thread-safe; what was read stays in the driver's cache.
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

  /** Digest of the manifest: equal fingerprints mean equal statistics. Belongs into equals/hashCode of pruned scans. */
  def fingerprint: String = manifest.fingerprint

  /** Columns of an analyzed snapshot whose distinct values were counted over the table, by key. Never throws. */
  def distinct(snapshot: Snapshot): Either[Reason, Map[String, TableDistinct]] = {
    snapshot.summary match {
      case None => Right(Map.empty)
      case Some(ref) =>
        PlanningPool.run(Seq(() => reader.tableDistinct(ref)), budget).head.map { counts =>
          for ((column, count) <- counts if snapshot.columns.isDefinedAt(column))
            yield snapshot.columns(column).key -> count
        }
    }
  }

  /**
   * How the values of columns are spread over the rows of an analyzed snapshot, as far as it is known. Never throws.
   *
   * @param columns keys and types: they are read side by side
   */
  def histograms(
      snapshot: Snapshot,
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] = {
    val (wanted, entries) = (for {
      summary <- snapshot.summary.toSeq
      (key, dataType) <- columns.distinct
      ordinal = snapshot.columns.indexWhere(_.key == key)
      if ordinal >= 0 && TypePromotion.fromEntry(snapshot.columns(ordinal), dataType) == TypePromotion.Full
    } yield (key, dataType) -> readers.histograms.histogram(snapshot, ordinal, summary, dataType)).unzip
    val read = CacheEntry.all(entries, budget.ofEstimates)
    val histograms = for ((column, Right(Some(histogram))) <- wanted.zip(read)) yield column -> histogram
    histograms.toMap
  }

  /**
   * Joins the statistics with the files of a scan; cached by the list's identity. Never throws.
   *
   * @param columns keys and types of columns that are going to be asked for: they are read meanwhile
   */
  def forFiles(files: FileList, columns: Seq[(String, DataType)]): FileSetStatistics = {
    val query = new QueryColumns(readers)
    val joined = files.findJoin(fingerprint).getOrElse {
      val joining = new FileJoiner(reader, readers.zones, manifest, files, budget).begin()
      // Of other blocks only few of the files may be known, if any: they are read once that is certain.
      val small = manifest.blocks.filter(_.files.rows <= 2L * files.length)
      val (zoned, others) = small.partition(_.zones.nonEmpty)
      query.zones.load(zoned, columns)
      query.bounds.load(others, columns)
      val known = joining().cachedOrSelf
      if (known.failure.isEmpty) files.keep(known)
      known
    }
    new BlockStatistics(readers, files, joined, query)
  }
}

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

  /** Begins; what it gives waits for the end. */
  def begin(): () => FileJoin = {
    val zoned = byZones
    val checks = for ((place, join) <- zoned; check <- join.checks) yield place -> check
    val checked = PlanningPool.start(checks.map(_._2), budget)
    val counted = PlanningPool.start(for ((place, _) <- zoned) yield () => reader.rows(blocks(place)), budget)
    val others = blocks.indices.diff(zoned.map(_._1))
    val listed = byPaths(others)
    () => {
      val results =
        for {
          ((place, _), Right(zones)) <- checks.zip(checked())
          zone <- zones
        } yield place -> zone
      // A table may have thousands of blocks: none of them searches all.
      val zonesByPlace = results.groupBy(_._1).withDefaultValue(Nil)
      def passed(place: Int) = for ((_, zone) <- zonesByPlace(place)) yield zone
      val (whole, parts) = zoned.zip(counted()).partition { case ((place, join), _) =>
        join.isComplete(passed(place))
      }
      val joinedByZones = for (((place, join), rows) <- whole)
        yield place -> rows.map(new BlockJoin(blocks(place), _, join.ordinals(passed(place))))
      val again = parts.map(_._1._1)
      val joined = joinedByZones ++ others.zip(listed()) ++ again.zip(byPaths(again)())
      result(joined.sortBy(_._1).map(_._2))
    }
  }

  private def result(joined: Seq[Either[Reason, BlockJoin]]): FileJoin = {
    val known = for (Right(block) <- joined if block.matches > 0) yield block
    val failures = for (Left(reason) <- joined) yield reason
    new FileJoin(manifest.fingerprint, files.length, known.toIndexedSeq, failures.headOption)
  }

  /** Large blocks of which zones may be in the scan, by their places. */
  private def byZones: Seq[(Int, ZoneJoin)] = {
    val large =
      blocks.indices.filter(place =>
        blocks(place).zones.nonEmpty && math.min(blocks(place).files.rows, Zone.Files) <= files.length)
    val read = PlanningPool.run(large.map(place => () => zones.identities(blocks(place))), budget)
    for ((place, Right(Some(identities))) <- large.zip(read))
      yield place -> new ZoneJoin(identities, files, blocks(place).files.rows.toInt)
  }

  private def byPaths(places: Seq[Int]): () => Seq[Either[Reason, BlockJoin]] =
    PlanningPool.start(places.map(place => () => byPaths(blocks(place))), budget)

  private def byPaths(block: Block): BlockJoin = {
    val known = reader.files(block)
    val join = new BlockJoin(block, known.rows, known.join(files))
    if (join.matches > 0) budget.reserve(known.weight + files.length * 4L)
    join
  }
}
