package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.{FileSourceOptions, TableIdentifier}
import org.apache.spark.sql.catalyst.catalog.{
  CatalogStatistics, CatalogStorageFormat, CatalogTable, CatalogTableType
}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{
  DataSourceUtils, HadoopFsRelation, LogicalRelation, PartitionDirectory
}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.estimates.{RelationColumns, V1Statistics}
import org.metastore.spark.pruning.{ConjunctRefusal, LiveFiles, ScanDecision, WantedRows}
import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.objects.{Manifest, TableIdentity}
import org.metastore.spark.tables.{FileRelation, UnsupportedRelease}

/** Tables that Spark reads as file relations: Delta's, Hudi's, and plain Parquet. */
private[scan] final class FileRelationAdapter extends RelationAdapter {

  override def prepare(
      relation: LogicalPlan,
      context: ScanContext,
      planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case Files(logical, files) if ScanMark.fromRelation(files).isEmpty =>
        try tableBehind(logical, files).map(prepareRelation(logical, files, _, context, planner))
        catch {
          case unsupported: UnsupportedRelease =>
            Some(withMark(logical, files, ScanMark.refuse(unsupported.reason), logical.catalogTable))
        }
      case _ => None
    }

  override def answer(
      relation: LogicalPlan,
      request: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] = relation match {
    case Files(logical, files)
        if ScanMark.fromRelation(files).isEmpty && mayLimit(logical, files, request.conjuncts) =>
      for {
        table <- unrestrictedTable(logical, files, planner)
        statistics <- planner.statistics(table.id).toOption
        read = table.listPartitions(request.conjuncts)
        counted <- table.countedFiles(read, request.conjuncts)
        scanned = ScannedFiles(
          table.id,
          counted,
          table.resolver(statistics.manifest),
          table.live(files.location, logical.catalogTable.map(_.identifier)),
          areChosen = true)
        measured <- measureNow(scanned, read, table, request, planner)
        answer <-
          measured.reading(scanOfRest(logical, read, table, counted, request.conjuncts, measured.decision))
      } yield answer
    case _ => None
  }

  private def unrestrictedTable(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      planner: ScanPlanner): Option[FileScan] =
    try tableBehind(logical, files).filter(_.restriction(planner.settings).isEmpty)
    catch { case _: UnsupportedRelease => None }

  /** Answers for the files as they are now: Spark may have listed them long ago. */
  private def measureNow(
      scanned: ScannedFiles,
      read: HadoopFsRelation,
      table: FileScan,
      request: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] =
    planner.measure(scanned, request).flatMap { measured =>
      val now = table.asNow(scanned.files, list(read, table, request.conjuncts))
      if (now eq scanned.files) Some(measured)
      else planner.measure(scanned.copy(files = now), request)
    }

  private def list(
      read: HadoopFsRelation,
      table: FileScan,
      conjuncts: Seq[Expression]): Seq[PartitionDirectory] = {
    val (partitionFilters, dataFilters) =
      DataSourceUtils.getPartitionFiltersAndDataFilters(read.partitionSchema, conjuncts)
    table.listWhole(read.location, partitionFilters, dataFilters)
  }

  /** Makes the relation that reads the unanswered files. Delta finds deleted rows in its own index only. */
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
      for (index <- FixedFileIndex.fromDecision(read.location, listed, table.files(listed), decision)) yield {
        val numbers = CatalogStatistics(index.sizeInBytes, rowsRead(decision))
        val entry = withNumbers(logical, table, read, numbers)
        WithTags(
          logical.copy(relation = FileScan.withLocation(read, index), catalogTable = Some(entry)),
          logical)
      }
    }

  private def rowsRead(decision: ScanDecision): Option[BigInt] = {
    val rows = decision.survivors.stream.toArray.map(decision.rows(_))
    Optional.when(!rows.contains(-1L))(BigInt(rows.sum).max(1))
  }

  override def table(relation: LogicalPlan): Option[TableIdentity] = relation match {
    case Files(logical, files) if ScanMark.fromRelation(files).isEmpty =>
      tableBehind(logical, files).map(_.id)
    case _ => None
  }

  override def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns] =
    relation match {
      case Files(logical, files) =>
        tableBehind(logical, files).flatMap { table =>
          planner.columns(table.id, table.lineage)(table.estimateResolver)
        }
      case _ => None
    }

  private def tableBehind(logical: LogicalRelation, files: HadoopFsRelation): Option[FileScan] = {
    val label = logical.catalogTable.map(_.identifier.unquotedString)
    ScanMark.fromRelation(files) match {
      // A permit means that Spark has chosen the partitions.
      case Some(permit: ScanMark.Permit) => ScanFormats.findMarkedTable(files, permit.root, label)
      case _ => ScanFormats.findTable(files, label)
    }
  }

  /** A relation that reads a fixed list of files. */
  private object Files {
    def unapply(plan: LogicalPlan): Option[(LogicalRelation, HadoopFsRelation)] = plan match {
      case logical: LogicalRelation if !logical.isStreaming =>
        for (files <- FileRelation.unapply(logical)) yield (logical, files)
      case _ => None
    }
  }

  private def prepareRelation(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      table: FileScan,
      context: ScanContext,
      planner: ScanPlanner): LogicalPlan = {
    val conjuncts = context.conjuncts.map(withRelationNames(_, logical))
    lazy val wanted =
      if (mayLimit(logical, files, conjuncts)) planner.wantedRows(table.id, context)(table.resolver)
      else None
    val mark = markOf(table, wanted, planner)
    if (!planner.estimates) withMark(logical, files, mark, logical.catalogTable)
    else planner.statistics(table.id) match {
      case Left(_) => withMark(logical, files, mark, withoutNumbers(logical, table))
      case Right(statistics) =>
        val read = ScanPlanner.recover(sizeOf(table), files)(table.listPartitions(conjuncts))
        val planned =
          planScan(logical, read, table, ScanRequest(conjuncts, wanted), planner, statistics.manifest)
        withEstimates(logical, files, read, table, mark, planned, planner, statistics.manifest)
    }
  }

  private def markOf(table: FileScan, wanted: => Option[WantedRows], planner: ScanPlanner): ScanMark =
    planner.restriction.orElse(table.restriction(planner.settings)) match {
      case Some(reason) => ScanMark.refuse(reason)
      case None => planner.statistics(table.id) match {
          case Left(reason) => ScanMark.refuse(reason)
          case Right(statistics) =>
            ScanMark.Permit(statistics.fingerprint, table.root.toString, wanted, table.command)
        }
    }

  private def withEstimates(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      read: HadoopFsRelation,
      table: FileScan,
      mark: ScanMark,
      planned: Option[ScanPlan],
      planner: ScanPlanner,
      statistics: Manifest): LogicalPlan = {
    val copy = planned.flatMap(catalogNumbers(files, table, _, statistics, planner)) match {
      case Some(numbers) =>
        // A scan that is not pruned lists its files when it runs, as without us.
        val listed = if (mark.isInstanceOf[ScanMark.Permit]) read else files
        withMark(logical, listed, mark, Some(withNumbers(logical, table, files, numbers)))
      case None => withMark(logical, files, mark, withoutNumbers(logical, table))
    }
    for (scan <- planned) copy.setTagValue(PrunedScan.Decision, scan.decision)
    copy
  }

  // The physical scan must know the whole filter, and each file must have its rows when it is read.
  private def mayLimit(
      logical: LogicalRelation,
      files: HadoopFsRelation,
      conjuncts: Seq[Expression]): Boolean = {
    val partitionColumns = AttributeSet(logical.resolve(files.partitionSchema, SQLConf.get.resolver))
    val options = new FileSourceOptions(files.options)
    def isSupported(conjunct: Expression): Boolean = {
      val partitionReferences = conjunct.references.intersect(partitionColumns)
      val isMixed =
        partitionReferences.nonEmpty && partitionReferences.size != conjunct.references.size
      !isMixed && ConjunctRefusal.reason(conjunct).isEmpty
    }
    if (options.ignoreCorruptFiles || options.ignoreMissingFiles) false
    else conjuncts.forall(isSupported)
  }

  // A query spells columns as the user wrote them; Spark's listings find them by the relation's names.
  private def withRelationNames(conjunct: Expression, logical: LogicalRelation): Expression =
    conjunct.transform {
      case column: AttributeReference =>
        logical.output.find(_.exprId == column.exprId).fold(column)(named => column.withName(named.name))
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
      read: HadoopFsRelation,
      table: FileScan,
      request: ScanRequest,
      planner: ScanPlanner,
      statistics: Manifest): Option[ScanPlan] =
    for (counted <- orNone(table)(table.countedFiles(read, request.conjuncts))) yield {
      val resolver = table.estimateResolver(statistics)
      val estimate =
        EstimateRequest(logical.output, resolver, () => table.lineage, isImmediate = true)
      val scan = ScannedFiles(table.id, counted, table.resolver(statistics), LiveFiles.Unknown)
      planner.plan(scan, request, Some(estimate))
    }

  private def catalogNumbers(
      files: HadoopFsRelation,
      table: FileScan,
      planned: ScanPlan,
      statistics: Manifest,
      planner: ScanPlanner): Option[CatalogStatistics] =
    orNone(table)(planner.countTime {
      val attributes =
        Indexed.entries(files.schema)(f => f.name -> AttributeReference(f.name, f.dataType, f.nullable)())
      val resolver = table.estimateResolver(statistics)
      planned.numbers.flatMap { numbers =>
        V1Statistics.fromFiles(
          files.schema,
          numbers,
          name => if (planner.isLate) None else resolver.key(attributes(name), Nil))
      }
    })

  private def orNone[A](table: FileScan)(value: => Option[A]): Option[A] =
    ScanPlanner.recover(sizeOf(table), Option.empty[A])(value)

  private def sizeOf(table: FileScan): String = s"The size of ${table.id.name}"

  /** The relation's catalog entry with our numbers; a table that is read by its path gets a new entry. */
  private def withNumbers(
      logical: LogicalRelation,
      table: FileScan,
      files: HadoopFsRelation,
      numbers: CatalogStatistics): CatalogTable =
    CaseClassCopy(logical.catalogTable.getOrElse(pathTable(table, files)), "stats" -> Some(numbers))

  private def withoutNumbers(logical: LogicalRelation, table: FileScan): Option[CatalogTable] =
    for (entry <- logical.catalogTable)
      yield CaseClassCopy(entry, "stats" -> table.fallbackStatistics(entry.stats))

  private def pathTable(table: FileScan, files: HadoopFsRelation): CatalogTable =
    CaseClassCopy.create(
      classOf[CatalogTable],
      "identifier" -> TableIdentifier(table.root.toString, Some(table.id.format)),
      "tableType" -> CatalogTableType.EXTERNAL,
      "storage" -> CaseClassCopy(CatalogStorageFormat.empty, "locationUri" -> Some(table.root.toUri)),
      "schema" -> files.schema,
      "provider" -> Some(table.id.format))
}
