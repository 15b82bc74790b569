package org.metastore.spark.scan

import java.util.Locale

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex, DataSourceUtils, FileIndex, HadoopFsRelation, InMemoryFileIndex, PartitionDirectory
}
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, DeletedRows, LiveFiles}
import org.metastore.spark.reason.{Indexed, Optional, Reason}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.objects.{ColumnEntry, Manifest, TableIdentity}
import org.metastore.spark.tables.{LakeTable, Leaf, ListedFileIndex, ParquetTable}

/** A directory of Parquet files that Spark reads by its own file source. */
private[scan] final class ParquetScan(
    override val relation: HadoopFsRelation,
    override val root: Path,
    label: Option[String])
  extends FileScan {

  override val id: TableIdentity =
    TableIdentity(
      ParquetTable.name,
      LakeTable.uuidOf(root),
      root.toString,
      FileScan.nameOf(ParquetTable.name, root, label))

  private val partitionColumns = Indexed.set(relation.partitionSchema.fieldNames)(_.toLowerCase(Locale.ROOT))

  /** Finds columns by their names in the files, ignoring case where Spark does. */
  override def resolver(statistics: Manifest): ColumnResolver = {
    val caseSensitive = SQLConf.get.caseSensitiveAnalysis
    (root, path) => {
      val name = root.name +: path
      val lowerCase = ColumnEntry.lowerCase(name)
      val sameIgnoringCase = statistics.pathsIgnoringCase.getOrElse(lowerCase, Nil)
      sameIgnoringCase.filter(written => !caseSensitive || written == name) match {
        case Seq(only) if !readsById && !partitionColumns(lowerCase.head) => Some(Leaf.key(only))
        // names that differ only in case are different columns in the files: Spark may read either
        case _ => None
      }
    }
  }

  /** Estimates take the values of partition columns from their paths. */
  override def estimateResolver(statistics: Manifest): ColumnResolver = {
    val stored = resolver(statistics)
    val isSameName = SQLConf.get.resolver
    (root, path) =>
      relation.partitionSchema.fieldNames.find(isSameName(_, root.name)) match {
        case Some(name) if path.isEmpty => Some(Leaf.key(Seq(name)))
        case _ => stored.key(root, path)
      }
  }

  private val readsById = ParquetUtils.hasFieldIds(relation.dataSchema)

  override def restriction(settings: MetastoreConf): Option[Reason] = FileScan.conversionRefusal(relation)

  /** Chooses the partitions of a catalog's table as Spark would later. So they are listed only once. */
  override def listPartitions(conjuncts: Seq[Expression]): HadoopFsRelation = relation.location match {
    case catalog: CatalogFileIndex =>
      FileScan.withLocation(relation, catalog.filterPartitions(partitionFilters(conjuncts)))
    case _ => relation
  }

  override def countedFiles(
      read: HadoopFsRelation,
      conjuncts: Seq[Expression]): Option[IndexedSeq[ScanFile]] = read.location match {
    case index: InMemoryFileIndex =>
      Some(withPartitionValues(index.listFiles(partitionFilters(conjuncts), Nil)))
    case _ => None
  }

  override def fallbackStatistics(numbers: Option[CatalogStatistics]): Option[CatalogStatistics] = numbers

  /** The conjuncts by which Spark itself chooses partitions. */
  private def partitionFilters(conjuncts: Seq[Expression]): Seq[Expression] =
    DataSourceUtils.getPartitionFiltersAndDataFilters(
      relation.partitionSchema,
      conjuncts.filter(c => c.deterministic && !SubqueryExpression.hasSubquery(c)))._1

  override def live(index: FileIndex, name: Option[TableIdentifier]): LiveFiles = index match {
    case all: InMemoryFileIndex if all.rootPaths.map(_.toUri.getPath) == Seq(root.toUri.getPath) =>
      val listed = all.listFiles(Nil, Nil) // it is in memory
      new LiveFiles(
        "Spark",
        Some(listed.map(_.files.length.toLong).sum),
        () => ScanFile.rowsByPath(files(listed)))
    // Spark has listed only the partitions that it chose. The rest is listed on demand.
    case _ => name match {
        case Some(table) => new LiveFiles("Spark", None, () => listAllPartitions(table))
        case None => LiveFiles.Unknown
      }
  }

  private def listAllPartitions(name: TableIdentifier): Seq[(String, Option[Long])] =
    ScanPlanner.recover(s"The partitions of ${id.name}", Seq.empty[(String, Option[Long])]) {
      val session = relation.sparkSession
      val partitions =
        new CatalogFileIndex(session, session.sessionState.catalog.getTableMetadata(name), sizeInBytes = 0L)
      ScanFile.rowsByPath(files(partitions.listFiles(Nil, Nil)))
    }

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for (file <- ListedFileIndex.filesOf(listed))
      yield ScanFile(
        LakeTable.pathInTable(file.getPath, root),
        file.getLen,
        None,
        modified = Some(file.getModificationTime),
        deleted = DeletedRows.Zero)

  // Another program may rewrite a file under its name. Spark then reads the new rows, but has listed the old
  // file.
  override def asNow(
      files: IndexedSeq[ScanFile],
      listed: => Seq[PartitionDirectory]): IndexedSeq[ScanFile] = {
    val listedFiles = ListedFileIndex.filesOf(listed)
    val folders = listedFiles.map(_.getPath.getParent).distinct
    val currentFiles =
      ScanPlanner.recover(s"The listing of ${id.name}", Seq.empty[FileStatus])(listAnew(folders))
    val versions = Indexed.set(currentFiles)(versionOf)
    val rewritten = listedFiles.filterNot(file => versions(versionOf(file)))
    val changed = Indexed.set(rewritten)(file => LakeTable.pathInTable(file.getPath, root))
    if (changed.isEmpty) files
    else files.map(file => if (changed(file.path)) file.copy(modified = Some(ParquetScan.Changed)) else file)
  }

  private def versionOf(file: FileStatus): (String, Long, Long) =
    (file.getPath.toUri.getPath, file.getLen, file.getModificationTime)

  /** Lists folders again, except those that cannot be listed in time. */
  private def listAnew(folders: Seq[Path]): Seq[FileStatus] = {
    val system = root.getFileSystem(PlanningContext.current.hadoop(relation.sparkSession))
    val limit = MetastoreConf().planningTimeoutMillis
    val reads = folders.map(folder => () => system.listStatus(folder).toSeq)
    PlanningPool.run(reads, new Budget(limit, limit, root.toString)).flatMap(_.getOrElse(Nil))
  }

  /** The files of a listing with their partition values. */
  private def withPartitionValues(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for {
      directory <- listed.toIndexedSeq
      partition = partitionOf(directory)
      file <- files(Seq(directory))
    } yield file.copy(partition = partition)

  private def partitionOf(directory: PartitionDirectory): Map[String, Literal] = {
    val fields = relation.partitionSchema.fields.toSeq
    Indexed.entries(fields.zip(directory.values.toSeq(fields.map(_.dataType)))) { case (field, value) =>
      Leaf.key(Seq(field.name)) -> Literal(value, field.dataType)
    }
  }
}

private[scan] object ParquetScan extends ScanFormat {
  override def hasLog: Boolean = false

  private val Changed = Long.MinValue // no time at which anything was modified

  /** Finds the table behind a relation, if it is one directory whose files may be dropped. */
  override def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    Optional.when(ParquetTable.is(relation))(new ParquetScan(relation, ParquetTable.rootOf(relation), label))

  /** Finds the table after Spark has chosen partitions, whose paths are then the relation's. */
  override def findMarkedTable(
      relation: HadoopFsRelation,
      root: String,
      label: Option[String]): Option[FileScan] =
    Optional.when(ParquetTable.isRead(relation))(new ParquetScan(relation, new Path(root), label))
}
