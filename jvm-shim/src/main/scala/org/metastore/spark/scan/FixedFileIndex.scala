package org.metastore.spark.scan

import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Indexed
import org.metastore.spark.tables.ListedFileIndex

/**
 * A file index fixed to the files that a decision kept. If the scan is planned again, it still reads exactly
 * the files that the answer leaves out.
 */
private[scan] final class FixedFileIndex private (
    index: FileIndex,
    directories: Seq[PartitionDirectory],
    val decision: ScanDecision)
  extends ListedFileIndex(index, directories) {

  override def equals(other: Any): Boolean = other match {
    case that: FixedFileIndex =>
      that.delegate == delegate && that.decision.fingerprint == decision.fingerprint
    case _ => false
  }

  override def hashCode: Int = 31 * delegate.hashCode + decision.fingerprint.hashCode
}

private[scan] object FixedFileIndex {

  /**
   * The index with the files of a listing that a decision keeps.
   *
   * @param files the files of the listing, in its order
   * @return None if the decision is about other files
   */
  def fromDecision(
      delegate: FileIndex,
      listed: Seq[PartitionDirectory],
      files: IndexedSeq[ScanFile],
      decision: ScanDecision): Option[FixedFileIndex] = {
    val positionOf = Indexed.places(decision.files.paths.zip(decision.files.sizes))
    val positions = files.flatMap(file => positionOf.get((file.path, file.size)))
    if (Seq(files.length, positions.length, positions.distinct.length).exists(_ != decision.before)) None
    else Some(new FixedFileIndex(
      delegate,
      FileScan.selectFiles(listed)(file => decision.survivors.get(positions(file))),
      decision))
  }
}
