package org.metastore.spark.adapter

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, InMemoryFileIndex}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Plain Parquet tables. */
private[adapter] final class ParquetAdapter(session: SparkSession) extends FileRelationAdapter[ParquetTable] {

  override protected def tableOf(files: HadoopFsRelation, label: Option[String]): Option[ParquetTable] =
    ParquetTable.of(files, label)

  override protected def restriction(files: HadoopFsRelation, table: ParquetTable, planner: ScanPlanner): Option[Reason] =
    ParquetAdapter.converted(files)

  /** Partitions in a catalog are listed as Spark would later, for the filters that it pushes, and once: it finds them chosen. */
  override protected def listed(files: HadoopFsRelation, table: ParquetTable, conjuncts: Seq[Expression]): HadoopFsRelation =
    files.location match {
      case catalog: CatalogFileIndex =>
        files.copy(location = catalog.filterPartitions(table.partitionFilters(conjuncts)))(files.sparkSession)
      case _ => files
    }

  override protected def counted(
      files: HadoopFsRelation, table: ParquetTable, conjuncts: Seq[Expression]): Option[IndexedSeq[DataFile]] = files.location match {
    case index: InMemoryFileIndex => Some(table.partitioned(index.listFiles(table.partitionFilters(conjuncts), Nil)))
    case _ => None
  }

  override protected def otherwise(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = numbers
}

private[adapter] object ParquetAdapter {
  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ, "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

  /** Why the scan's dates or timestamps are other values than those that were analyzed. */
  def converted(files: HadoopFsRelation): Option[Reason] = {
    val conf = SQLConf.get
    def legacy = rebaseModes.exists { case (option, setting) =>
      // The setting itself knows its older names.
      val mode = files.options.find(_._1.equalsIgnoreCase(option)).fold(conf.getConf(setting).toString)(_._2)
      mode.equalsIgnoreCase("LEGACY")
    }
    if (legacy) Some(refused("it reads by the legacy calendar"))
    else if (conf.getConf(SQLConf.PARQUET_INT96_TIMESTAMP_CONVERSION) && holdsTimestamps(files.dataSchema))
      Some(refused("it moves timestamps of other writers to another time zone"))
    else None
  }

  private def holdsTimestamps(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.fields.exists(field => holdsTimestamps(field.dataType))
    case other => other == TimestampType // what stands in lists and maps has no statistics
  }

  /** A scan that is read as without us. */
  def refused(detail: String): Reason =
    Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> detail)
}
