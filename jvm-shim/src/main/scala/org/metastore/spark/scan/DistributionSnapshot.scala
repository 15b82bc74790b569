package org.metastore.spark.scan

import org.metastore.spark.statistics.objects.{Manifest, Snapshot}

/** The analyzed snapshot whose distributions serve estimates for the one that is read. */
private[scan] final case class DistributionSnapshot(snapshot: Snapshot, isAncestor: Boolean, isRead: Boolean)

private[scan] object DistributionSnapshot {

  /** The one that is read or the newest before it, else the newest of all. */
  def choose(manifest: Manifest, lineage: Iterator[String]): Option[DistributionSnapshot] = {
    if (lineage.isEmpty) manifest.latest.map(DistributionSnapshot(_, isAncestor = true, isRead = true))
    else {
      val read = manifest.snapshot(lineage.next())
      val before = read.orElse(lineage.map(manifest.snapshot).collectFirst { case Some(snapshot) =>
        snapshot
      })
      before.orElse(manifest.latest).map(DistributionSnapshot(_, before.isDefined, read.isDefined))
    }
  }
}
