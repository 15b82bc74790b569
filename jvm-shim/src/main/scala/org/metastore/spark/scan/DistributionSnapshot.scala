package org.metastore.spark.scan

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.{Manifest, Snapshot}

/** The analyzed snapshot whose distributions serve estimates for the one that is read. */
private[scan] final case class DistributionSnapshot(snapshot: Snapshot, isAncestor: Boolean, isRead: Boolean)

private[scan] object DistributionSnapshot {

  /** The snapshot that is read, else the newest before it, else the newest of all. */
  def choose(manifest: Manifest, lineage: Iterator[String]): Option[DistributionSnapshot] = {
    if (lineage.isEmpty) manifest.latest.map(DistributionSnapshot(_, isAncestor = true, isRead = true))
    else {
      val read = manifest.snapshot(lineage.next())
      val nearest = read.orElse(Indexed.first(lineage.flatMap(manifest.snapshot(_))))
      nearest.orElse(manifest.latest).map(DistributionSnapshot(_, nearest.isDefined, read.isDefined))
    }
  }
}
