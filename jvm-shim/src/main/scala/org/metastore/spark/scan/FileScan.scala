package org.metastore.spark.scan

import java.util.Locale

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, LiveFiles, ScanDecision}
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}

/** A table that Spark reads as a file relation: its identity, and how its statistics name columns and files. */
private[scan] trait FileScan {
  def id: TableIdentity
  def root: Path
  def relation: HadoopFsRelation

  /** Why no file may be dropped, beside what the whole plan forbids. */
  def restriction(settings: MetastoreConf): Option[Reason]

  /** The relation that is planned, of which the files that an estimate counts are listed. */
  def listPartitions(conjuncts: Seq[Expression]): HadoopFsRelation = relation

  /** The data files that an estimate counts; None where there is none to be made now. */
  def countedFiles(read: HadoopFsRelation, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]]

  /** Those of Spark's own ANALYZE that stay where our numbers are not known: of most formats they are of an unknown version. */
  def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = None

  /** Finds columns of the statistics by their names in queries. */
  def resolver(statistics: Manifest): ColumnResolver

  /** The same for estimates, which need not be of the very values that a scan returns. */
  def estimateResolver(statistics: Manifest): ColumnResolver = resolver(statistics)

  /** The snapshot that is read and those before it, newest first; none where there are no snapshots. */
  def lineage: Iterator[String] = Iterator.empty

  /**
   * All data files of the snapshot that an index reads.
   *
   * @param name the table's name in the session's catalog
   */
  def live(index: FileIndex, name: Option[TableIdentifier]): LiveFiles

  /** Filters of the physical scan that hold for every row of a file without deleted rows. */
  def hidesDeletedRows(filter: Expression): Boolean = false

  /** The data files of a listing, in its order. */
  def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile]

  /** The same files of a listing, as unknown ones those that are others now: Spark may have listed them long ago. */
  def asNow(files: IndexedSeq[ScanFile], listed: => Seq[PartitionDirectory]): IndexedSeq[ScanFile] = files

  /** The same files with what the table format knows of their rows. */
  def countRows(files: IndexedSeq[ScanFile]): IndexedSeq[ScanFile] = files

  /** An index by which listeners recognise the table format's scans, and which lists the files of another one. */
  def recognizable(index: FileIndex): FileIndex = index

  /** The files that are counted. */
  def listWhole(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)

  /** The files that the table format leaves to us; `decide` tells what we decide about a listing. */
  def list(
      index: FileIndex,
      statistics: Manifest,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)
}

private[spark] object FileScan {

  /** Some files of a listing, by their place in it. */
  def selectFiles(listed: Seq[PartitionDirectory])(keep: Int => Boolean): Seq[PartitionDirectory] = {
    var file = -1
    val left = listed.map { partition =>
      partition.copy(files = partition.files.filter { _ => file += 1; keep(file) })
    }
    left.filter(_.files.nonEmpty)
  }

  /** The conjuncts that name nothing but some columns, given in lower case: by those of partitions Spark or Hudi chooses them. */
  def conjunctsOver(columns: Set[String], conjuncts: Seq[Expression]): Seq[Expression] = conjuncts.filter {
    c =>
      c.deterministic && !SubqueryExpression.hasSubquery(c) && c.references.nonEmpty &&
      c.references.forall(a => columns(a.name.toLowerCase(Locale.ROOT)))
  }

  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ,
    "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

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
