package org.metastore.spark.scan

import java.util.Locale

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex, DataSourceUtils, FileIndex, HadoopFsRelation, InMemoryFileIndex, PartitionDirectory
}
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.pruning.{ColumnResolver, LiveFiles}
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.tables.{LakeTable, Leaf, ParquetTable}

/** A directory of Parquet files that Spark reads by its own file source. */
private[scan] final class ParquetScan(relation: HadoopFsRelation, override val root: Path, label: Option[String]) extends FileScan {

  override val id: TableIdentity = TableIdentity(ParquetTable.name, LakeTable.uuidOf(root), root.toString, label.getOrElse(s"${ParquetTable.name}.`$root`"))

  private val partitionColumns = relation.partitionSchema.fieldNames.map(_.toLowerCase(Locale.ROOT)).toSet

  /** Columns by their names in the files, in any case where Spark reads them so. */
  override def resolver(statistics: Manifest): ColumnResolver = {
    val caseSensitive = SQLConf.get.caseSensitiveAnalysis
    (root, path) => {
      val name = root.name +: path
      val alike = statistics.pathsIgnoringCase.getOrElse(name.map(_.toLowerCase(Locale.ROOT)), Nil)
      alike.filter(written => !caseSensitive || written == name) match {
        case Seq(only) if !readsById && !partitionColumns(name.head.toLowerCase(Locale.ROOT)) => Some(Leaf.key(only))
        case _ => None // two names that differ by case alone are two columns in the files, and Spark reads either
      }
    }
  }

  /** Estimates take the values of partition columns from their paths. */
  override def estimateResolver(statistics: Manifest): ColumnResolver = {
    val stored = resolver(statistics)
    val same = SQLConf.get.resolver
    (root, path) => relation.partitionSchema.fieldNames.find(same(_, root.name)).filter(_ => path.isEmpty).map(name => Leaf.key(Seq(name)))
      .orElse(stored.key(root, path))
  }

  private val readsById = ParquetUtils.hasFieldIds(relation.dataSchema)

  /** Conjuncts by which Spark itself chooses partitions. */
  def partitionFilters(conjuncts: Seq[Expression]): Seq[Expression] =
    DataSourceUtils.getPartitionFiltersAndDataFilters(
      relation.partitionSchema, conjuncts.filter(c => c.deterministic && !SubqueryExpression.hasSubquery(c)))._1

  // Of a table in a catalog Spark lists the partitions that it has chosen, and no others.
  override def live(index: FileIndex): LiveFiles = index match {
    case all: InMemoryFileIndex if all.rootPaths.map(_.toUri.getPath) == Seq(root.toUri.getPath) =>
      val listed = all.listFiles(Nil, Nil) // it is in memory
      new LiveFiles("Spark", Some(listed.map(_.files.length.toLong).sum), () => files(listed).map(file => file.path -> file.rows))
    case _ => LiveFiles.Unknown
  }

  override def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] =
    listed.iterator.flatMap(_.files).toIndexedSeq.map { file =>
      ScanFile(LakeTable.pathInTable(file.getPath, root), file.getLen, None, modified = Some(file.getModificationTime))
    }

  /** The same with the values of partition columns. */
  def withPartitionValues(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile] = listed.toIndexedSeq.flatMap { directory =>
    val fields = relation.partitionSchema.fields.toSeq
    val values = fields.zip(directory.values.toSeq(fields.map(_.dataType))).map { case (field, value) =>
      Leaf.key(Seq(field.name)) -> Literal(value, field.dataType)
    }.toMap
    files(Seq(directory)).map(_.copy(partition = values))
  }
}

private[scan] object ParquetScan {

  /** The table behind a relation, if it is one directory that we know how to read fewer files of. */
  def of(relation: HadoopFsRelation, label: Option[String]): Option[ParquetScan] =
    if (ParquetTable.is(relation)) Some(new ParquetScan(relation, ParquetTable.rootOf(relation), label)) else None

  /** The same table later, when Spark has chosen partitions: then its paths are theirs. */
  def at(relation: HadoopFsRelation, root: String, label: Option[String]): Option[ParquetScan] =
    if (ParquetTable.isRead(relation)) Some(new ParquetScan(relation, new Path(root), label)) else None
}

/** Plain Parquet tables. */
private[scan] final class ParquetAdapter(session: SparkSession) extends FileRelationAdapter[ParquetScan] {

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

private[scan] object ParquetAdapter {
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
