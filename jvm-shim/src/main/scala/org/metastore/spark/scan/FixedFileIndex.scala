package org.metastore.spark.scan

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{
  And, AttributeReference, BoundReference, Expression, Predicate
}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Indexed

/**
 * A file index fixed to the files that a decision kept. If the scan is planned again, it still reads exactly
 * the files that the answer leaves out.
 */
private[scan] final class FixedFileIndex private (
    val delegate: FileIndex,
    directories: Seq[PartitionDirectory],
    val decision: ScanDecision)
  extends FileIndex {

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = FileScan.filesOf(directories).map(_.getPath.toString).toArray
  override def sizeInBytes: Long = FileScan.filesOf(directories).map(_.getLen).sum
  override def partitionSchema: StructType = delegate.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = delegate.metadataOpsTimeNs
  override def refresh(): Unit = ()

  // Nothing above the scan repeats a partition filter, and Spark may add some later.
  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    if (partitionFilters.isEmpty) directories
    else {
      val predicate = Predicate.createInterpreted(bind(partitionFilters.reduceLeft(And(_, _))))
      directories.filter(directory => predicate.eval(directory.values))
    }

  private def bind(partitionFilter: Expression): Expression = partitionFilter.transform {
    case column: AttributeReference =>
      BoundReference(partitionSchema.fieldNames.indexOf(column.name), column.dataType, column.nullable)
  }

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
