package org.metastore.spark.store

import org.metastore.spark.explain.Reason

/**
 * Looks for the files of a scan in the blocks of one version of the statistics. A large block is asked for whole zones first:
 * that takes hashes of the scan's paths, and none of the block's.
 */
private[store] final class FileJoiner(reader: BlockReader, manifest: Manifest, files: FileList, budget: Budget) {

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
    val counted = PlanningPool.start(zoned.map { case (place, _) => () => reader.rows(blocks(place)) }, budget)
    val others = blocks.indices.diff(zoned.map(_._1))
    val listed = byPaths(others)
    () => {
      val zones = checks.map(_._1).zip(checked()).collect { case (place, Right(found)) => place -> found }
        .groupBy(_._1).map { case (place, found) => place -> found.flatMap(_._2) }.withDefaultValue(Nil)
      val (whole, parts) = zoned.zip(counted()).partition { case ((place, join), _) => join.isComplete(zones(place)) }
      val again = parts.map(_._1._1)
      val joined = whole.map { case ((place, join), rows) =>
        place -> rows.map(new BlockJoin(blocks(place), _, join.ordinals(zones(place))))
      } ++ others.zip(listed()) ++ again.zip(byPaths(again)())
      result(joined.sortBy(_._1).map(_._2))
    }
  }

  private def result(joined: Seq[Either[Reason, BlockJoin]]): FileJoin = {
    val known = joined.collect { case Right(block) if block.matches > 0 => block }
    new FileJoin(manifest.fingerprint, files.length, known.toIndexedSeq, joined.collectFirst { case Left(reason) => reason })
  }

  /** Large blocks of which zones may be in the scan, by their places. */
  private def byZones: Seq[(Int, ZoneJoin)] = {
    val large = blocks.indices.filter(place => blocks(place).zones.nonEmpty && math.min(blocks(place).files.rows, Zone.Files) <= files.length)
    large.zip(PlanningPool.run(large.map(place => () => reader.identities(blocks(place))), budget)).collect {
      case (place, Right(Some(identities))) => place -> new ZoneJoin(identities, files, blocks(place).files.rows.toInt)
    }
  }

  private def byPaths(places: Seq[Int]): () => Seq[Either[Reason, BlockJoin]] =
    PlanningPool.start(
      places.map(place => () => {
        val known = reader.files(blocks(place))
        val found = new BlockJoin(blocks(place), known.rows, known.join(files))
        if (found.matches > 0) budget.reserve(known.weight + files.length * 4L)
        found
      }), budget)
}

/** Zones of one block in a scan's list of files. */
private final class ZoneJoin(identities: ZoneIdentities, files: FileList, blockFiles: Int) {
  import ZoneJoin._

  private val places = identities.places(files, blockFiles)

  /** Tasks that give the zones whose files stand where they may stand. */
  def checks: Seq[() => Seq[Int]] = places.indices.filter(places(_) >= 0).grouped(AtOnce).toVector.map { zones =>
    () => identities.confirm(zones, places, files, blockFiles)
  }

  /** Whether these zones tell of all files whether they are in the block. */
  def isComplete(zones: Seq[Int]): Boolean =
    zones.size == places.length || zones.map(Zone.length(_, blockFiles)).sum == files.length

  /** Ordinal in the block of each file, by the zones that were found. */
  def ordinals(zones: Seq[Int]): Array[Int] = {
    val out = new Array[Int](files.length)
    java.util.Arrays.fill(out, -1)
    zones.foreach { zone =>
      val (from, first) = (places(zone), zone * Zone.Files)
      var i = 0
      while (i < Zone.length(zone, blockFiles)) {
        out(from + i) = first + i
        i += 1
      }
    }
    out
  }
}

private object ZoneJoin {
  private val AtOnce = 32 // zones
}
