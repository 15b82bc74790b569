package org.metastore.spark.cardinality

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.explain.Reason
import org.metastore.spark.store._

/**
 * Statistics of a scan's files and, for estimates, what the table format knows of its partition columns: the one value that
 * each file has, whether or not it was analyzed.
 *
 * @param partitions of each file the values of partition columns, by key
 * @param counts     rows of each file, 0 where they are not known
 */
private[cardinality] final class PartitionedFiles(
    analyzed: FileStatistics, partitions: Array[Map[String, Literal]], counts: Array[Long]) extends FileStatistics {

  private val told: Map[(String, DataType), Seq[Option[ColumnZone]]] =
    partitions.headOption.fold(Set.empty[String])(_.keySet).iterator.map(key => key -> partitions.flatMap(_.get(key))).collect {
      case (key, values) if values.length == partitions.length =>
        (key, values.head.dataType) -> values.indices.map(file => PartitionedFiles.zone(values(file), counts(file)))
    }.toMap

  private lazy val partitioned = new ZoneFiles(counts, told)

  /** Whether the values of a column are those of the partitions. */
  def isPartition(key: String, dataType: DataType): Boolean = told.contains((key, dataType))

  override def column(key: String, dataType: DataType): Either[Reason, ColumnZones] = of(key, dataType).column(key, dataType)

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] = of(key, dataType).sizes(key, dataType)

  private def of(key: String, dataType: DataType): FileStatistics = if (isPartition(key, dataType)) partitioned else analyzed

  override def among(files: Array[Int]): PartitionedFiles =
    new PartitionedFiles(analyzed.among(files), files.map(partitions(_)), files.map(counts(_)))

  override def files: FileList = analyzed.files
  override def fingerprint: String = analyzed.fingerprint
  override def rows: Array[Long] = analyzed.rows
  override def known(file: Int): Boolean = analyzed.known(file)
  override def knownFiles: Int = analyzed.knownFiles
  override def load(columns: Seq[(String, DataType)]): Unit = analyzed.load(columns)
  override def groups(columns: Seq[(String, DataType)]): Seq[FileGroups] = analyzed.groups(columns)

  override def values(key: String, dataType: DataType, among: Array[Int], filters: Boolean): ColumnValues =
    analyzed.values(key, dataType, among, filters)

  override def frequencies(key: String, dataType: DataType, value: Any, among: Array[Int]): Array[Long] =
    analyzed.frequencies(key, dataType, value, among)
}

private object PartitionedFiles {

  /** A column that has one value in all rows of a file. */
  def zone(value: Literal, rows: Long): Option[ColumnZone] = value.value match {
    case null => Some(ColumnZone(rows, Some(rows), Some(0L), None, None, loExact = false, hiExact = false, Some(0L), None, None))
    case nan if ColumnHistogram.isNaN(nan) => None
    case one =>
      val bytes = one match {
        case text: UTF8String => text.numBytes.toLong
        case _ => value.dataType.defaultSize.toLong
      }
      Some(ColumnZone(
        rows, Some(0L), Some(0L), Some(one), Some(one), loExact = true, hiExact = true, Some(1L), Some(bytes.toDouble), Some(bytes)))
  }
}
