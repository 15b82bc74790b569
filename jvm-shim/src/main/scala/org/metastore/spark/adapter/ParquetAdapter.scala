package org.metastore.spark.adapter

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, InMemoryFileIndex}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Plain Parquet tables. */
private[adapter] final class ParquetAdapter(session: SparkSession) extends FileRelationAdapter[ParquetScan] {

  override protected def tableOf(files: HadoopFsRelation, label: Option[String]): Option[ParquetScan] =
    ParquetScan.of(files, label)

  override protected def restriction(files: HadoopFsRelation, table: ParquetScan, planner: ScanPlanner): Option[Reason] =
    ParquetAdapter.conversionRefusal(files)

  /** Partitions in a catalog are listed as Spark would later, for the filters that it pushes, and once: it finds them chosen. */
  override protected def listPartitions(files: HadoopFsRelation, table: ParquetScan, conjuncts: Seq[Expression]): HadoopFsRelation =
    files.location match {
      case catalog: CatalogFileIndex =>
        files.copy(location = catalog.filterPartitions(table.partitionFilters(conjuncts)))(files.sparkSession)
      case _ => files
    }

  override protected def countedFiles(
      files: HadoopFsRelation, table: ParquetScan, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] = files.location match {
    case index: InMemoryFileIndex => Some(table.withPartitionValues(index.listFiles(table.partitionFilters(conjuncts), Nil)))
    case _ => None
  }

  override protected def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = numbers
}

private[adapter] object ParquetAdapter {
  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ, "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

  /** Why the scan's dates or timestamps are other values than those that were analyzed. */
  def conversionRefusal(files: HadoopFsRelation): Option[Reason] = {
    val conf = SQLConf.get
    def legacy = rebaseModes.exists { case (option, setting) =>
      // The setting itself knows its older names.
      val mode = files.options.find(_._1.equalsIgnoreCase(option)).fold(conf.getConf(setting).toString)(_._2)
      mode.equalsIgnoreCase("LEGACY")
    }
    if (legacy) Some(refuse("it reads by the legacy calendar"))
    else if (conf.getConf(SQLConf.PARQUET_INT96_TIMESTAMP_CONVERSION) && holdsTimestamps(files.dataSchema))
      Some(refuse("it moves timestamps of other writers to another time zone"))
    else None
  }

  private def holdsTimestamps(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.fields.exists(field => holdsTimestamps(field.dataType))
    case other => other == TimestampType // what stands in lists and maps has no statistics
  }

  /** A scan that is read as without us. */
  def refuse(detail: String): Reason =
    Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> detail)
}
