package org.metastore.spark.scan

import java.util.Locale

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, LiveFiles, ScanDecision}
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}

/** A table that Spark reads as a file relation: its identity, and the names of its columns and files in statistics. */
private[scan] trait FileScan {
  def id: TableIdentity
  def root: Path
  def relation: HadoopFsRelation

  /** Why no file may be dropped; None: files may be. */
  def restriction(settings: MetastoreConf): Option[Reason]

  /** How a row-level command may find its files, if the scan finds them for it. */
  def command: Option[RowLevelPruning] = None

  /** The relation with the partitions chosen that these conjuncts leave, where this is done before it is listed. */
  def listPartitions(conjuncts: Seq[Expression]): HadoopFsRelation = relation

  /** The data files that an estimate counts; None where the files are not known yet. */
  def countedFiles(read: HadoopFsRelation, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]]

  /** The numbers of Spark's own ANALYZE that stay where ours are unknown: for most formats none, as their version is unknown. */
  def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = None

  /** Finds columns of the statistics by their names in queries. */
  def resolver(statistics: Manifest): ColumnResolver

  /** Finds columns for estimates, whose values need not be the very values that a scan returns. */
  def estimateResolver(statistics: Manifest): ColumnResolver = resolver(statistics)

  /** The snapshot that is read and those before it, newest first; empty where there are no snapshots. */
  def lineage: Iterator[String] = Iterator.empty

  /**
   * All data files of the snapshot that an index reads.
   *
   * @param name the table's name in the session's catalog
   */
  def live(index: FileIndex, name: Option[TableIdentifier]): LiveFiles

  /** Whether a filter of the physical scan only hides deleted rows. */
  def hidesDeletedRows(filter: Expression): Boolean = false

  /** The data files of a listing, in its order. */
  def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile]

  /** The same files, with an unknown version where a file has changed since Spark listed it. */
  def asNow(files: IndexedSeq[ScanFile], listed: => Seq[PartitionDirectory]): IndexedSeq[ScanFile] = files

  /** The same files with their rows, where the table format counts them. */
  def countRows(files: IndexedSeq[ScanFile]): IndexedSeq[ScanFile] = files

  /** An index of the table format's own class, which listeners recognise, and which answers as `index` does. */
  def recognizable(index: FileIndex): FileIndex = index

  /** All files that pass the filters, without the table format's own skipping of files. */
  def listWhole(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)

  /** The files that the table format leaves to us; `decide` returns our decision on a listing. */
  def list(
      index: FileIndex,
      statistics: Manifest,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)
}

private[spark] object FileScan {

  /** The name of a table as plans show it: `label`, else its format and path. */
  def nameOf(format: String, root: Path, label: Option[String]): String = label.getOrElse(s"$format.`$root`")

  /** The relation with another index. */
  def withLocation(relation: HadoopFsRelation, location: FileIndex): HadoopFsRelation =
    relation.copy(location = location)(relation.sparkSession)

  /** The files of a listing, in its order. */
  def filesOf(listed: Seq[PartitionDirectory]): IndexedSeq[FileStatus] =
    for {
      directory <- listed.toIndexedSeq
      file <- directory.files
    } yield file.fileStatus

  /** The files of a listing that are kept, by their place in it. */
  def selectFiles(listed: Seq[PartitionDirectory])(keep: Int => Boolean): Seq[PartitionDirectory] = {
    var file = -1
    val left = listed.map { partition =>
      partition.copy(files = partition.files.filter { _ => file += 1; keep(file) })
    }
    left.filter(_.files.nonEmpty)
  }

  /** The conjuncts that name no other columns than these, given in lower case: Spark or Hudi chooses partitions by them. */
  def conjunctsOver(columns: Set[String], conjuncts: Seq[Expression]): Seq[Expression] = conjuncts.filter {
    c =>
      c.deterministic && !SubqueryExpression.hasSubquery(c) && c.references.nonEmpty &&
      c.references.forall(a => columns(a.name.toLowerCase(Locale.ROOT)))
  }

  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ,
    "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

  /** Why a scan may return other dates or timestamps than those that were analyzed; None where it returns the same. */
  def conversionRefusal(files: HadoopFsRelation): Option[Reason] = {
    val conf = SQLConf.get
    def legacy = rebaseModes.exists { case (option, setting) =>
      // The setting itself knows its older names.
      val mode = CaseInsensitiveMap(files.options).getOrElse(option, conf.getConf(setting).toString)
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

  /** The reason to leave a scan alone. */
  def refuse(detail: String): Reason =
    Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> detail)
}
