package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** Statistics of one manifest for the planning of one query. */
private[store] final class PlanningStatistics(readers: StatisticsReaders) extends TableStatistics {
  import readers.{blocks => reader, budget}

  override def manifest: Manifest = readers.manifest

  override def fingerprint: String = manifest.fingerprint

  override def distinct(snapshot: Snapshot): Either[Reason, Map[String, TableDistinct]] = {
    val found = snapshot.summary.map { ref =>
      PlanningPool.run(Seq(() => reader.tableDistinct(ref)), budget).head.map { counts =>
        counts.filter { case (column, _) => snapshot.columns.indices.contains(column) }
          .map { case (column, count) => snapshot.columns(column).key -> count }
      }
    }
    found.getOrElse(Right(Map.empty))
  }

  override def histograms(snapshot: Snapshot, columns: Seq[(String, DataType)]): Map[(String, DataType), ColumnHistogram] = {
    val wanted = for {
      summary <- snapshot.summary.toSeq
      (key, dataType) <- columns.distinct
      (entry, ordinal) <- snapshot.columns.iterator.zipWithIndex.find(_._1.key == key).toSeq
      if TypePromotion.of(entry, dataType) == TypePromotion.Full
    } yield (key, dataType) -> readers.histograms.histogram(snapshot, ordinal, summary, dataType)
    val found = CacheEntry.all(wanted.map(_._2), budget.ofEstimates)
    wanted.map(_._1).zip(found).collect { case (column, Right(Some(histogram))) => column -> histogram }.toMap
  }

  override def of(files: FileList, wanted: Seq[(String, DataType)]): FileSetStatistics = {
    val columns = new QueryColumns(readers)
    val joined = files.findJoin(fingerprint).getOrElse {
      val joining = new FileJoiner(reader, readers.zones, manifest, files, budget).begin()
      // Of other blocks only few of the files may be known, if any: they are read once that is certain.
      val (zoned, others) = manifest.blocks.filter(_.files.rows <= 2L * files.length).partition(_.zones.nonEmpty)
      columns.zones.load(zoned, wanted)
      columns.bounds.load(others, wanted)
      val known = joining().cachedOrSelf
      if (known.failure.isEmpty) files.keep(known)
      known
    }
    new BlockStatistics(readers, files, joined, columns)
  }
}
