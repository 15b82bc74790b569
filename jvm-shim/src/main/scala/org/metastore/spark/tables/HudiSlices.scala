package org.metastore.spark.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/** A listing of some file slices of a Hudi table. It ignores filters: ANALYZE has none. */
private[tables] final class HudiSlices private (delegate: FileIndex, listed: Seq[PartitionDirectory])
  extends FileIndex {
  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = listed.flatMap(_.files.map(_.getPath.toString)).toArray
  override def sizeInBytes: Long = listed.flatMap(_.files.map(_.getLen)).sum
  override def partitionSchema: StructType = delegate.partitionSchema
  override def refresh(): Unit = ()

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = listed
}

private[tables] object HudiSlices {

  /** The slices of a relation whose rows have these versions, by base file. */
  def select(relation: HadoopFsRelation, versions: Map[Path, Long]): HudiSlices = {
    val logFiles = new HudiLogFiles(relation)
    // Without filters Hudi skips nothing: its own skipping loses rows in 1.2.0.
    val selected = for (partition <- relation.location.listFiles(Nil, Nil)) yield {
      def isSelected(file: Path): Boolean = versions.get(file).exists { version =>
        HudiLogFiles.sliceOf(partition.values, file).flatMap(logFiles.version).contains(version)
      }
      partition.copy(files = partition.files.filter(file => isSelected(file.getPath)))
    }
    new HudiSlices(relation.location, selected.filter(_.files.nonEmpty))
  }
}
