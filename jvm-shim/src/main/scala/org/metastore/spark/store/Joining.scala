package org.metastore.spark.store

import org.metastore.spark.explain.Reason

/**
 * Looks for the files of a scan in the blocks of one version of the statistics. A large block is asked for whole zones first:
 * that takes hashes of the scan's paths, and none of the block's.
 */
private[store] final class FileJoiner(reader: BlockReader, zones: ZoneReader, manifest: Manifest, files: FileList, budget: Budget) {

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
      val found = checks.map(_._1).zip(checked()).collect { case (place, Right(some)) => place -> some }
        .groupBy(_._1).map { case (place, some) => place -> some.flatMap(_._2) }.withDefaultValue(Nil)
      val (whole, parts) = zoned.zip(counted()).partition { case ((place, join), _) => join.isComplete(found(place)) }
      val again = parts.map(_._1._1)
      val joined = whole.map { case ((place, join), rows) =>
        place -> rows.map(new BlockJoin(blocks(place), _, join.ordinals(found(place))))
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
    large.zip(PlanningPool.run(large.map(place => () => zones.identities(blocks(place))), budget)).collect {
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
