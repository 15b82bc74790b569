package org.metastore.spark.scan

import java.util.Locale

import org.apache.hadoop.fs.Path

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

/** A table that Spark reads as a file relation, and the names of its columns and files in statistics. */
private[scan] trait FileScan {
  def id: TableIdentity
  def root: Path
  def relation: HadoopFsRelation

  /** The reason why no file may be dropped, or None. */
  def restriction(settings: MetastoreConf): Option[Reason]

  /** The allowed ways of a row-level command to find its files, if the scan finds them for it. */
  def command: Option[RowLevelPruning] = None

  /** The relation restricted to the partitions that can match, if they are chosen before files are listed. */
  def listPartitions(conjuncts: Seq[Expression]): HadoopFsRelation = relation

  /** The data files that an estimate counts, or None if they are not known yet. */
  def countedFiles(read: HadoopFsRelation, conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]]

  /**
   * The numbers of Spark's own ANALYZE, used if ours are unknown. Most formats use none: the version that was
   * analyzed is unknown.
   */
  def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = None

  /** Finds columns of the statistics by their names in queries. */
  def resolver(statistics: Manifest): ColumnResolver

  /** Finds columns for estimates; their values may differ from those that a scan returns. */
  def estimateResolver(statistics: Manifest): ColumnResolver = resolver(statistics)

  /** The snapshot that is read and those before it, newest first; empty without snapshots. */
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

  /** The same files; a file that has changed since Spark listed it gets an unknown version. */
  def asNow(files: IndexedSeq[ScanFile], listed: => Seq[PartitionDirectory]): IndexedSeq[ScanFile] = files

  /** The same files with their row counts, if the table format has them. */
  def countRows(files: IndexedSeq[ScanFile]): IndexedSeq[ScanFile] = files

  /** An index of the table format's own class, which listeners recognize. It answers as `index` does. */
  def recognizable(index: FileIndex): FileIndex = index

  /** All files that pass the filters, without the table format's own skipping of files. */
  def listWhole(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)

  /** The files that remain after the format's own skipping; `decide` returns our decision on a listing. */
  def list(
      index: FileIndex,
      statistics: Manifest,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] =
    index.listFiles(partitionFilters, dataFilters)
}

private[spark] object FileScan {

  /** The table's name in plans: `label`, else its format and path. */
  def nameOf(format: String, root: Path, label: Option[String]): String = label.getOrElse(s"$format.`$root`")

  /** The relation with another index. */
  def withLocation(relation: HadoopFsRelation, location: FileIndex): HadoopFsRelation =
    relation.copy(location = location)(relation.sparkSession)

  /** Selects files of a listing by their position in it. */
  def selectFiles(listed: Seq[PartitionDirectory])(keep: Int => Boolean): Seq[PartitionDirectory] = {
    var file = -1
    val selected = listed.map { partition =>
      partition.copy(files = partition.files.filter { _ => file += 1; keep(file) })
    }
    selected.filter(_.files.nonEmpty)
  }

  /** The conjuncts over these columns only (in lower case): Spark or Hudi chooses partitions by them. */
  def conjunctsOver(columns: Set[String], conjuncts: Seq[Expression]): Seq[Expression] = conjuncts.filter {
    c =>
      c.deterministic && !SubqueryExpression.hasSubquery(c) && c.references.nonEmpty &&
      c.references.forall(a => columns(a.name.toLowerCase(Locale.ROOT)))
  }

  private val rebaseModes = Seq(
    "datetimeRebaseMode" -> SQLConf.PARQUET_REBASE_MODE_IN_READ,
    "int96RebaseMode" -> SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)

  /** The reason why a scan may return other dates or timestamps than were analyzed, or None. */
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
    case other => other == TimestampType // elements of lists and maps have no statistics
  }

  /** Makes the reason not to prune a scan. */
  def refuse(detail: String): Reason =
    Reason(ReasonCode.UnsupportedTable, "relation" -> "this scan", "detail" -> detail)
}
