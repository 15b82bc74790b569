package org.metastore.spark.scan

import java.util.Locale

import scala.collection.immutable

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{
  CatalogStatistics, CatalogStorageFormat, CatalogTable, CatalogTableType
}
import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, AttributeSet, Expression, Literal, SortOrder, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{
  DataSourceUtils, FileIndex, HadoopFsRelation, LogicalRelation, PartitionDirectory
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType, TimestampType}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.{RelationColumns, V1Statistics}
import org.metastore.spark.pruning.{
  ColumnResolver, ConjunctRefusal, DeletedRows, ExpressionColumns, LiveFiles, RowOrder, ScanDecision,
  WantedRows
}
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.TableStatistics
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.statistics.objects.{FileKey, Manifest, TableIdentity}
import org.metastore.spark.tables.UnsupportedRelease

/**
 * What stands above a scan.
 *
 * @param conjuncts every row that is used satisfies them
 * @param limit     so many of the rows that satisfy them are enough: no other filter stands between
 * @param order     the first key of the sort by which these rows are the first; None: whichever they are
 */
private[scan] final case class ScanContext(
    conjuncts: Seq[Expression] = Nil,
    limit: Option[Long] = None,
    order: Option[SortOrder] = None) {

  /** The rows that are enough; None where all are wanted, or the order is not one of a column or an expression with statistics. */
  def wanted(columns: => ExpressionColumns): Option[WantedRows] = order match {
    case None => limit.map(WantedRows(_))
    case Some(first) =>
      val known = columns
      val key = first.copy(child = known.replaceIn(first.child).getOrElse(first.child))
      for (most <- limit; by <- RowOrder.fromSort(key, known)) yield WantedRows(most, Some(by))
  }
}

/** Says which table a relation is, drops files from its scan and hands the optimizer the numbers of those that stay. */
private[scan] trait RelationAdapter {

  /** What is planned in a leaf's place, by what stands above it. None: not of this kind, or prepared. */
  def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan]

  /**
   * What an aggregate of a relation's rows is, where it follows from the statistics; None where it does not, or the relation is
   * not of this kind. May throw.
   */
  def answer(relation: LogicalPlan, asked: AggregateRequest, planner: ScanPlanner): Option[MeasuredScan]

  /** The table of a relation whose statistics are going to be asked for; None where it is not of this kind. May throw. */
  def table(relation: LogicalPlan): Option[TableIdentity]

  /** What the statistics know of a relation's columns; None where it is not of this kind, or never analyzed. May throw. */
  def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns]
}

/** Tables that Spark reads as file relations: Delta's, Hudi's, and plain Parquet. */
private[scan] final class FileRelationAdapter extends RelationAdapter {

  override def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case Files(logical, files) if ScanMark.of(files).isEmpty =>
        try tableBehind(logical, files).map(prepareRelation(logical, files, _, above, planner))
        catch {
          case unknown: UnsupportedRelease =>
            Some(withMark(logical, files, ScanMark.refuse(unknown.reason), logical.catalogTable))
        }
      case _ => None
    }

  override def answer(
      relation: LogicalPlan,
      asked: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] = relation match {
    case Files(logical, files) if ScanMark.of(files).isEmpty && mayLimit(logical, files, asked.conjuncts) =>
      for {
        table <-
          try tableBehind(logical, files).filter(_.restriction(planner.settings).isEmpty)
          catch { case _: UnsupportedRelease => None }
        known <- planner.statistics(table.id).toOption
        read = table.listPartitions(asked.conjuncts)
        counted <- table.countedFiles(read, asked.conjuncts)
        scanned = ScannedFiles(
          table.id,
          counted,
          table.resolver(known.manifest),
          table.live(files.location, logical.catalogTable.map(_.identifier)),
          areChosen = true)
        measured <- measureNow(scanned, read, table, asked, planner)
        answer <-
          measured.reading(scanOfRest(logical, read, table, counted, asked.conjuncts, measured.decision))
      } yield answer
    case _ => None
  }

  private def measureNow(
      scanned: ScannedFiles,
      read: HadoopFsRelation,
      table: FileScan,
      asked: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] =
    planner.measure(scanned, asked).flatMap { measured =>
      val now = table.asNow(scanned.files, list(read, table, asked.conjuncts))
      if (now eq scanned.files) Some(measured) else planner.measure(scanned.copy(files = now), asked)
    }

  private def list(
      read: HadoopFsRelation,
      table: FileScan,
      conjuncts: Seq[Expression]): Seq[PartitionDirectory] = {
    val (ofPartition, ofData) =
      DataSourceUtils.getPartitionFiltersAndDataFilters(read.partitionSchema, conjuncts)
    table.listWhole(read.location, ofPartition, ofData)
  }

  /** The relation with the files alone that are to be read. Delta looks for deleted rows in no index but its own. */
  private def scanOfRest(
      logical: LogicalRelation,
      read: HadoopFsRelation,
      table: FileScan,
      counted: IndexedSeq[ScanFile],
      conjuncts: Seq[Expression],
      decision: ScanDecision): Option[LogicalPlan] =
    if (decision.survivors.stream.anyMatch(file => !counted(file).deletedRows.contains(0.0))) None
    else {
      val listed = list(read, table, conjuncts)
      FixedFileIndex.of(read.location, listed, table.files(listed), decision).map { index =>
        val rows = decision.survivors.stream.toArray.toSeq.map(decision.rows(_))
        val numbers = CatalogStatistics(
          index.sizeInBytes,
          if (rows.contains(-1L)) None else Some(BigInt(rows.sum).max(1)))
        val entry =
          CaseClassCopy(logical.catalogTable.getOrElse(pathTable(table, read)), "stats" -> Some(numbers))
        WithTags(
          logical.copy(relation = read.copy(location = index)(read.sparkSession), catalogTable = Some(entry)),
          logical)
      }
    }

  override def table(relation: LogicalPlan): Option[TableIdentity] = relation match {
    case Files(logical, files) if ScanMark.of(files).isEmpty => tableBehind(logical, files).map(_.id)
    case _ => None
  }

  override def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns] =
    relation match {
      case Files(logical, files) =>
        for (table <- tableBehind(logical, files); known <- planner.statistics(table.id).toOption)
          yield planner.columns(table.id, known, table.estimateResolver(known.manifest), table.lineage)
      case _ => None
    }

  private def tableBehind(logical: LogicalRelation, files: HadoopFsRelation): Option[FileScan] = {
    val label = logical.catalogTable.map(_.identifier.unquotedString)
    ScanMark.of(files) match {
      // its partitions are chosen
      case Some(permit: ScanMark.Permit) => FileScan.at(files, permit.root, label)
      case _ => FileScan.of(files, label)
    }
  }

  /** A relation that reads a fixed list of files. */
  private object Files {
    def unapply(plan: LogicalPlan): Option[(LogicalRelation, HadoopFsRelation)] = plan match {
      case logical: LogicalRelation if !logical.isStreaming =>
        Some(logical.relation).collect { case files: HadoopFsRelation => logical -> files }
      case _ => None
    }
  }

  private def prepareRelation(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      table: FileScan,
      above: ScanContext,
      planner: ScanPlanner): LogicalPlan = {
    val conjuncts = above.conjuncts.map(withRelationNames(_, logical))
    lazy val known = planner.statistics(table.id)
    lazy val wanted = if (!mayLimit(logical, files, conjuncts)) None
    else
      known.toOption.flatMap(found => above.wanted(planner.columnsOf(found, table.resolver(found.manifest))))
    val mark = planner.restriction.orElse(table.restriction(planner.settings)) match {
      case Some(why) => ScanMark.refuse(why)
      case None =>
        known.fold(ScanMark.refuse, s => ScanMark.Permit(s.fingerprint, table.root.toString, wanted))
    }
    if (!planner.estimates) withMark(logical, files, mark, logical.catalogTable)
    else {
      val read =
        if (known.isRight) orNone(table)(Some(table.listPartitions(conjuncts))).getOrElse(files) else files
      val planned = planScan(logical, read, table, conjuncts, wanted, planner, known)
      val numbers = planned.flatMap(catalogNumbers(files, table, _, known, planner))
      val fixed =
        // who is left alone lists when it runs, as without us
        if (numbers.isDefined && mark.isInstanceOf[ScanMark.Permit]) read else files
      val copy = withMark(logical, fixed, mark, withStatistics(logical, files, table, numbers))
      planned.foreach(one => copy.setTagValue(ScanDecisions.Decision, one.decision))
      copy
    }
  }

  // The physical scan must know the whole filter, and each file must have its rows when it is read.
  private def mayLimit(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      conjuncts: Seq[Expression]): Boolean = {
    val partition = AttributeSet(logical.resolve(files.partitionSchema, SQLConf.get.resolver))
    val options = new FileSourceOptions(files.options)
    !options.ignoreCorruptFiles && !options.ignoreMissingFiles && conjuncts.forall { conjunct =>
      val ofPartition = conjunct.references.intersect(partition)
      ConjunctRefusal.reason(
        conjunct).isEmpty && (ofPartition.isEmpty || ofPartition.size == conjunct.references.size)
    }
  }

  // In a query columns stand as the user wrote them; Spark's listings look for them by the names of the relation.
  private def withRelationNames(conjunct: Expression, logical: LogicalRelation): Expression =
    conjunct.transform {
      case column: AttributeReference =>
        logical.output.find(_.exprId == column.exprId).fold(column)(of => column.withName(of.name))
    }

  private def withMark(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      mark: ScanMark,
      entry: Option[CatalogTable]): LogicalPlan = {
    WithTags(
      logical.copy(
        relation = files.copy(options = files.options + mark.asOption)(files.sparkSession),
        catalogTable = entry),
      logical)
  }

  private def planScan(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      table: FileScan,
      conjuncts: Seq[Expression],
      wanted: => Option[WantedRows],
      planner: ScanPlanner,
      known: => Either[Reason, TableStatistics]): Option[ScanPlan] =
    for (statistics <- known.toOption; listed <- orNone(table)(table.countedFiles(files, conjuncts)))
      yield {
        val asked =
          EstimateRequest(logical.output, table.estimateResolver(statistics.manifest), () => table.lineage)
        planner.plan(
          table.id,
          listed,
          ScanRequest(conjuncts, wanted),
          table.resolver(statistics.manifest),
          LiveFiles.Unknown,
          Some(asked))
      }

  private def catalogNumbers(
      files: HadoopFsRelation,
      table: FileScan,
      planned: ScanPlan,
      known: => Either[Reason, TableStatistics],
      planner: ScanPlanner): Option[CatalogStatistics] =
    orNone(table)(planner.countTime {
      val attributes =
        files.schema.map(f => f.name -> AttributeReference(f.name, f.dataType, f.nullable)()).toMap
      for (numbers <- planned.numbers; statistics <- known.toOption;
        estimated = table.estimateResolver(statistics.manifest);
        found <- V1Statistics.fromFiles(
          files.schema,
          numbers,
          name => if (planner.isLate) None else estimated.key(attributes(name), Nil)))
        yield found
    })

  private def orNone[A](table: FileScan)(found: => Option[A]): Option[A] =
    ScanPlanner.orElse(s"The size of ${table.id.name}", Option.empty[A])(found)

  private def withStatistics(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      table: FileScan,
      numbers: Option[CatalogStatistics]): Option[CatalogTable] =
    if (numbers.isEmpty)
      logical.catalogTable.map(entry =>
        CaseClassCopy(entry, "stats" -> table.fallbackStatistics(entry.stats)))
    else
      Some(CaseClassCopy(logical.catalogTable.getOrElse(pathTable(table, files)), "stats" -> numbers))

  // A table read by its path has no entry in a catalog, where Spark looks for numbers.
  private def pathTable(table: FileScan, files: HadoopFsRelation): CatalogTable =
    CaseClassCopy.create(
      classOf[CatalogTable],
      "identifier" -> TableIdentifier(table.root.toString, Some(table.id.format)),
      "tableType" -> CatalogTableType.EXTERNAL,
      "storage" -> CaseClassCopy(CatalogStorageFormat.empty, "locationUri" -> Some(table.root.toUri)),
      "schema" -> files.schema,
      "provider" -> Some(table.id.format))
}

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

  /** The table behind a relation; None where it is none that we know. */
  def of(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    ofFormatWithLog(relation, label).orElse(ParquetScan.of(relation, label))

  /** The table behind the relation of a physical scan that was marked with its root; None where it is none that we know. */
  def at(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    ofFormatWithLog(relation, label).orElse(ParquetScan.at(relation, root, label))

  /** The table of a format that keeps a log of its data files. */
  def ofFormatWithLog(relation: HadoopFsRelation, label: Option[String]): Option[FileScan] =
    DeltaScan.of(relation, label).orElse(HudiScan.of(relation, label))

  /** As `FileScan.recognizable`, for who has no table. */
  def recognizable(fixed: FixedFileIndex, relation: HadoopFsRelation): FileIndex =
    ofFormatWithLog(
      relation.copy(location = fixed.delegate)(relation.sparkSession),
      None).fold[FileIndex](fixed)(_.recognizable(fixed))

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

/**
 * A data file of a scan, as the table format lists it at planning.
 *
 * @param deletedRows an estimate
 * @param deleted     what is known for certain; unknown too where not all other rows of the file are read, or others are
 */
final case class ScanFile(
    path: String,
    size: Long,
    rows: Option[Long],
    deletedRows: Option[Double] = Some(0),
    modified: Option[Long] = None,
    hasChanges: Boolean = false,
    deleted: DeletedRows = DeletedRows.Unknown,
    partition: Map[String, Literal] = Map.empty)

/** The data files of several scans, with the list by which their join with the statistics is found again. */
private[scan] final class ScanFiles(files: IndexedSeq[ScanFile]) extends immutable.IndexedSeq[ScanFile] {
  override def length: Int = files.length
  override def apply(place: Int): ScanFile = files(place)

  lazy val list: FileList = ScanFiles.listOf(files)
}

private[scan] object ScanFiles {

  /** The list of data files that the statistics are asked with. */
  def listOf(files: IndexedSeq[ScanFile]): FileList = files match {
    case shared: ScanFiles => shared.list
    case own => FileList.of(own.map(file => FileKey(file.path, file.size, file.modified)))
  }
}

/** A copy of a node with the tags of the one that it stands for. */
private[scan] object WithTags {
  def apply[P <: LogicalPlan](copy: P, of: LogicalPlan): P = {
    copy.copyTagsFrom(of)
    copy
  }

  def apply[P <: SparkPlan](copy: P, of: SparkPlan): P = {
    copy.copyTagsFrom(of)
    copy
  }
}
