package org.metastore.spark.tables

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.catalyst.expressions.{
  And, AttributeReference, BoundReference, Expression, Predicate
}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/** A file index of some files of another index; its listing never changes. */
private[spark] class ListedFileIndex(val delegate: FileIndex, directories: Seq[PartitionDirectory])
  extends FileIndex {
  private def files = ListedFileIndex.filesOf(directories)

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = files.map(_.getPath.toString).toArray
  override def sizeInBytes: Long = files.map(_.getLen).sum
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
}

private[spark] object ListedFileIndex {

  /** The files of a listing, in its order. */
  def filesOf(listed: Seq[PartitionDirectory]): IndexedSeq[FileStatus] =
    for {
      directory <- listed.toIndexedSeq
      file <- directory.files
    } yield file.fileStatus
}
