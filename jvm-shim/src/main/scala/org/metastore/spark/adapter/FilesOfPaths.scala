package org.metastore.spark.adapter

import scala.util.Try

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, BoundReference, Expression, FileSourceConstantMetadataAttribute, Predicate}
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionDirectory}

/** Leaves out the data files that a query itself excludes by `_metadata.file_path`: Delta's own index lists them all. */
private[adapter] object FilePathFilter {

  def by(filters: Seq[Expression], listed: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val ofPaths = filters.filter(f => f.deterministic && f.references.nonEmpty && f.references.forall(isPath))
    if (ofPaths.isEmpty) listed
    else Try {
      val predicate = Predicate.createInterpreted(ofPaths.map(bound).reduce(And(_, _)))
      listed.map(partition => partition.copy(files = partition.files.filter { file =>
        predicate.eval(FileFormat.createMetadataInternalRow(
          InternalRow.empty, Seq(FileFormat.FILE_PATH), SparkPath.fromPath(file.getPath), file.getLen, file.getModificationTime))
      }))
    }.getOrElse(listed) // the query says what is wrong with its filter
  }

  private def bound(filter: Expression): Expression = filter.transform {
    case path: AttributeReference => BoundReference(0, path.dataType, nullable = false)
  }

  private def isPath(column: Expression): Boolean = column match {
    case FileSourceConstantMetadataAttribute(path) => path.name == FileFormat.FILE_PATH
    case _ => false
  }
}
