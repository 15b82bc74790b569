package org.metastore.spark.statistics

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockJoin, BlockReader, FileJoin, FileList, FileSetStatistics, TableDistinct, TypePromotion
}
import org.metastore.spark.statistics.objects.{Manifest, Snapshot}
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
    val found = snapshot.summary.map { ref =>
      PlanningPool.run(Seq(() => reader.tableDistinct(ref)), budget).head.map { counts =>
        counts.filter { case (column, _) => snapshot.columns.indices.contains(column) }
          .map { case (column, count) => snapshot.columns(column).key -> count }
      }
    }
    found.getOrElse(Right(Map.empty))
  }

  /**
   * How the values of columns are spread over the rows of an analyzed snapshot, as far as it is known. Never throws.
   *
   * @param columns keys and types: they are read side by side
   */
  def histograms(
      snapshot: Snapshot,
      columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] = {
    val wanted = for {
      summary <- snapshot.summary.toSeq
      (key, dataType) <- columns.distinct
      (entry, ordinal) <- snapshot.columns.iterator.zipWithIndex.find(_._1.key == key).toSeq
      if TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (key, dataType) -> readers.histograms.histogram(snapshot, ordinal, summary, dataType)
    val found = CacheEntry.all(wanted.map(_._2), budget.ofEstimates)
    wanted.map(_._1).zip(found).collect { case (column, Right(Some(histogram))) => column -> histogram }.toMap
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
      val (zoned, others) =
        manifest.blocks.filter(_.files.rows <= 2L * files.length).partition(_.zones.nonEmpty)
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
    val checks = zoned.flatMap { case (place, join) => join.checks.map(place -> _) }
    val checked = PlanningPool.start(checks.map(_._2), budget)
    val counted =
      PlanningPool.start(zoned.map { case (place, _) => () => reader.rows(blocks(place)) }, budget)
    val others = blocks.indices.diff(zoned.map(_._1))
    val listed = byPaths(others)
    () => {
      val found = checks.map(_._1).zip(checked()).collect { case (place, Right(some)) => place -> some }
        .groupBy(_._1).map { case (place, some) => place -> some.flatMap(_._2) }.withDefaultValue(Nil)
      val (whole, parts) = zoned.zip(counted()).partition { case ((place, join), _) =>
        join.isComplete(found(place))
      }
      val again = parts.map(_._1._1)
      val joined = whole.map { case ((place, join), rows) =>
        place -> rows.map(new BlockJoin(blocks(place), _, join.ordinals(found(place))))
      } ++ others.zip(listed()) ++ again.zip(byPaths(again)())
      result(joined.sortBy(_._1).map(_._2))
    }
  }

  private def result(joined: Seq[Either[Reason, BlockJoin]]): FileJoin = {
    val known = joined.collect { case Right(block) if block.matches > 0 => block }
    new FileJoin(
      manifest.fingerprint,
      files.length,
      known.toIndexedSeq,
      joined.collectFirst { case Left(reason) => reason })
  }

  /** Large blocks of which zones may be in the scan, by their places. */
  private def byZones: Seq[(Int, ZoneJoin)] = {
    val large =
      blocks.indices.filter(place =>
        blocks(place).zones.nonEmpty && math.min(blocks(place).files.rows, Zone.Files) <= files.length)
    large.zip(PlanningPool.run(large.map(place => () => zones.identities(blocks(place))), budget)).collect {
      case (place, Right(Some(identities))) =>
        place -> new ZoneJoin(identities, files, blocks(place).files.rows.toInt)
    }
  }

  private def byPaths(places: Seq[Int]): () => Seq[Either[Reason, BlockJoin]] =
    PlanningPool.start(
      places.map(place =>
        () => {
          val known = reader.files(blocks(place))
          val found = new BlockJoin(blocks(place), known.rows, known.join(files))
          if (found.matches > 0) budget.reserve(known.weight + files.length * 4L)
          found
        }),
      budget)
}
