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
import org.metastore.spark.reason.{Indexed, Reason}
import org.metastore.spark.statistics.TableStatistics
import org.metastore.spark.statistics.objects.TableIdentity
import org.metastore.spark.tables.UnsupportedRelease

/** Tables that Spark reads as file relations: Delta's, Hudi's, and plain Parquet. */
private[scan] final class FileRelationAdapter extends RelationAdapter {

  override def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case Files(logical, files) if ScanMark.find(files).isEmpty =>
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
    case Files(logical, files) if ScanMark.find(files).isEmpty && mayLimit(logical, files, asked.conjuncts) =>
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
      if (now eq scanned.files) Some(measured)
      else planner.measure(scanned.copy(files = now), asked)
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
      FixedFileIndex.fromDecision(read.location, listed, table.files(listed), decision).map { index =>
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
    case Files(logical, files) if ScanMark.find(files).isEmpty => tableBehind(logical, files).map(_.id)
    case _ => None
  }

  override def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns] =
    relation match {
      case Files(logical, files) =>
        for {
          table <- tableBehind(logical, files)
          known <- planner.statistics(table.id).toOption
        } yield planner.columns(table.id, known, table.estimateResolver(known.manifest), table.lineage)
      case _ => None
    }

  private def tableBehind(logical: LogicalRelation, files: HadoopFsRelation): Option[FileScan] = {
    val label = logical.catalogTable.map(_.identifier.unquotedString)
    ScanMark.find(files) match {
      // its partitions are chosen
      case Some(permit: ScanMark.Permit) => ScanFormats.findMarkedTable(files, permit.root, label)
      case _ => ScanFormats.findTable(files, label)
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
        if (known.isLeft) files
        else ScanPlanner.recover(sizeOf(table), files)(table.listPartitions(conjuncts))
      val planned = planScan(logical, read, table, conjuncts, wanted, planner, known)
      val numbers = planned.flatMap(catalogNumbers(files, table, _, known, planner))
      val fixed =
        // who is left alone lists when it runs, as without us
        if (numbers.isDefined && mark.isInstanceOf[ScanMark.Permit]) read
        else files
      val copy = withMark(logical, fixed, mark, withStatistics(logical, files, table, numbers))
      for (one <- planned) copy.setTagValue(ScanDecisions.Decision, one.decision)
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
    for {
      statistics <- known.toOption
      listed <- orNone(table)(table.countedFiles(files, conjuncts))
    } yield {
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
        Indexed.entries(files.schema)(f => f.name -> AttributeReference(f.name, f.dataType, f.nullable)())
      for {
        numbers <- planned.numbers
        statistics <- known.toOption
        estimated = table.estimateResolver(statistics.manifest)
        found <- V1Statistics.fromFiles(
          files.schema,
          numbers,
          name => if (planner.isLate) None else estimated.key(attributes(name), Nil))
      } yield found
    })

  private def orNone[A](table: FileScan)(found: => Option[A]): Option[A] =
    ScanPlanner.recover(sizeOf(table), Option.empty[A])(found)

  private def sizeOf(table: FileScan): String = s"The size of ${table.id.name}"

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
