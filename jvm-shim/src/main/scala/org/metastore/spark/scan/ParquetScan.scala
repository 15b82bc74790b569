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
import org.metastore.spark.reason.{Indexed, Reason}
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.tables.{LakeTable, Leaf, ParquetTable}

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
      label.getOrElse(s"${ParquetTable.name}.`$root`"))

  private val partitionColumns = Indexed.set(relation.partitionSchema.fieldNames)(_.toLowerCase(Locale.ROOT))

  /** Columns by their names in the files, in any case where Spark reads them so. */
  override def resolver(statistics: Manifest): ColumnResolver = {
    val caseSensitive = SQLConf.get.caseSensitiveAnalysis
    (root, path) => {
      val name = root.name +: path
      val alike = statistics.pathsIgnoringCase.getOrElse(name.map(_.toLowerCase(Locale.ROOT)), Nil)
      alike.filter(written => !caseSensitive || written == name) match {
        case Seq(only) if !readsById && !partitionColumns(name.head.toLowerCase(Locale.ROOT)) =>
          Some(Leaf.key(only))
        // two names that differ by case alone are two columns in the files, and Spark reads either
        case _ => None
      }
    }
  }

  /** Estimates take the values of partition columns from their paths. */
  override def estimateResolver(statistics: Manifest): ColumnResolver = {
    val stored = resolver(statistics)
    val same = SQLConf.get.resolver
    (root, path) =>
      relation.partitionSchema.fieldNames.find(same(_, root.name)) match {
        case Some(name) if path.isEmpty => Some(Leaf.key(Seq(name)))
        case _ => stored.key(root, path)
      }
  }

  private val readsById = ParquetUtils.hasFieldIds(relation.dataSchema)

  override def restriction(settings: MetastoreConf): Option[Reason] = FileScan.conversionRefusal(relation)

  /** Partitions in a catalog are listed as Spark would later, for the filters that it pushes, and once: it finds them chosen. */
  override def listPartitions(conjuncts: Seq[Expression]): HadoopFsRelation = relation.location match {
    case catalog: CatalogFileIndex =>
      relation.copy(location = catalog.filterPartitions(partitionFilters(conjuncts)))(relation.sparkSession)
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

  /** Conjuncts by which Spark itself chooses partitions. */
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
    // Of a table in a catalog Spark lists the partitions that it has chosen, and no others: these are listed where they are asked for.
    case _ =>
      name.fold(LiveFiles.Unknown)(table => new LiveFiles("Spark", None, () => listAllPartitions(table)))
  }

  private def listAllPartitions(name: TableIdentifier): Seq[(String, Option[Long])] =
    ScanPlanner.recover(s"The partitions of ${id.name}", Seq.empty[(String, Option[Long])]) {
      val session = relation.sparkSession
      val partitions =
        new CatalogFileIndex(session, session.sessionState.catalog.getTableMetadata(name), sizeInBytes = 0L)
      ScanFile.rowsByPath(files(partitions.listFiles(Nil, Nil)))
    }

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    for {
      directory <- listed.toIndexedSeq
      file <- directory.files
    } yield ScanFile(
      LakeTable.pathInTable(file.getPath, root),
      file.getLen,
      None,
      modified = Some(file.getModificationTime),
      deleted = DeletedRows.Zero)

  // A file that another program writes anew under its name is read as it is then, by whoever lists it as it was.
  override def asNow(
      files: IndexedSeq[ScanFile],
      listed: => Seq[PartitionDirectory]): IndexedSeq[ScanFile] = {
    val before = listed.flatMap(_.files)
    val folders = before.map(_.getPath.getParent).distinct
    val now = ScanPlanner.recover(s"The listing of ${id.name}", Seq.empty[FileStatus])(listAnew(folders))
    val versions = Indexed.set(now)(file => version(file.getPath, file.getLen, file.getModificationTime))
    val others =
      before.filterNot(file => versions(version(file.getPath, file.getLen, file.getModificationTime)))
    val changed = Indexed.set(others)(file => LakeTable.pathInTable(file.getPath, root))
    if (changed.isEmpty) files
    else files.map(file => if (changed(file.path)) file.copy(modified = Some(ParquetScan.Changed)) else file)
  }

  private def version(path: Path, size: Long, modified: Long): (String, Long, Long) =
    (path.toUri.getPath, size, modified)

  /** The files of some folders; none of those that cannot be listed in time. */
  private def listAnew(folders: Seq[Path]): Seq[FileStatus] = {
    val system = root.getFileSystem(PlanningContext.current.hadoop(relation.sparkSession))
    val limit = MetastoreConf().planningTimeoutMillis
    val reads = folders.map(folder => () => system.listStatus(folder).toSeq)
    PlanningPool.run(reads, new Budget(limit, limit, root.toString)).flatMap(_.getOrElse(Nil))
  }

  /** The same with the values of partition columns. */
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

  /** The table behind a relation, if it is one directory that we know how to read fewer files of. */
  override def findTable(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    if (ParquetTable.is(relation)) Some(new ParquetScan(relation, ParquetTable.rootOf(relation), label))
    else None

  /** The same table later, when Spark has chosen partitions: then its paths are theirs. */
  override def findMarkedTable(
      relation: HadoopFsRelation,
      root: String,
      label: Option[String]): Option[FileScan] =
    if (ParquetTable.isRead(relation)) Some(new ParquetScan(relation, new Path(root), label))
    else None
}
