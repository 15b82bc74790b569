package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.connector.write.RowLevelOperation
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation, DataSourceV2ScanRelation, PushDownUtils
}
import org.apache.spark.sql.metastore.{PushedPredicates, RowLevelTarget}

import org.metastore.spark.estimates.{RelationColumns, V2Statistics}
import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.objects.TableIdentity
import org.metastore.spark.tables.{DelegateProxy, FormatReleases, IcebergMembers, IcebergTable}

/** Puts proxies before table, scan builder and scan of Iceberg tables, before Iceberg's own push-down. */
private[scan] final class IcebergAdapter extends RelationAdapter {
  import IcebergAdapter.{isIncremental, isSupported, proxyBefore}

  override def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case metadata: DataSourceV2Relation if IcebergTable.isMetadataTable(metadata.table) =>
        val why = Reason(ReasonCode.MetadataTable)
        Some(proxyBefore(metadata, new IcebergPassThrough(metadata.table.name, why, harmless = false)))
      case iceberg: DataSourceV2Relation if IcebergTable.is(iceberg.table) =>
        val interceptor = FormatReleases.refusal(iceberg.table) match {
          case Some(why) => new IcebergPassThrough(iceberg.table.name, why, harmless = false)
          case None => interceptorOf(new IcebergScan(iceberg.table), iceberg, above, planner)
        }
        Some(proxyBefore(iceberg, interceptor))
      case _ => None
    }

  override def answer(
      relation: LogicalPlan,
      request: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] = relation match {
    case iceberg: DataSourceV2Relation
        if isSupported(iceberg.table) && !isIncremental(iceberg) =>
      val table = new IcebergScan(iceberg.table)
      for {
        _ <- planner.statistics(table.id).toOption
        planned <- planScan(table, iceberg, request, planner)
        measured <- planner.measure(planned.scanned, request)
        answer <- measured.reading(planned.scanOfRest(measured.decision))
      } yield answer
    case _ => None
  }

  /** The scan as Spark will build it if the aggregate stays: equal scans share their planning. */
  private def planScan(
      table: IcebergScan,
      iceberg: DataSourceV2Relation,
      request: AggregateRequest,
      planner: ScanPlanner): Option[IcebergPlannedScan] = {
    val listing =
      new IcebergListing(new IcebergPruning(table, iceberg.output, ScanContext(request.conjuncts), planner))
    val source = DelegateProxy.create(new IcebergSourceProxy(iceberg.table, listing), classOf[Table])
    val builder = source.asInstanceOf[SupportsRead].newScanBuilder(iceberg.options)
    PushedPredicates.push(builder, request.conjuncts.filterNot(SubqueryExpression.hasSubquery))
    val (scan, output) = PushDownUtils.pruneColumns(builder, iceberg, request.columns, request.conjuncts)
    if (scan.getClass.getName != IcebergMembers.QueryScanClass) None
    else {
      val tasks = IcebergTasks.fromScan(scan, table.snapshot, planner)
      val columns = new OutputColumns(iceberg.output, table.keysOf(scan))
      // The plan above does not know a struct that is read in part.
      val areWhole = output.forall(column =>
        iceberg.output.exists(own => own.exprId == column.exprId && own.dataType == column.dataType))
      val live = table.live(IcebergTable.title, scan, tasks.live, listing.unasked)
      val scanned = ScannedFiles(table.id, tasks.files, columns, live, areChosen = areWhole)
      Some(new IcebergPlannedScan(iceberg, scan, output, tasks, scanned))
    }
  }

  override def table(relation: LogicalPlan): Option[TableIdentity] = scanned(relation).map(_._2.id)

  override def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns] =
    scanned(relation).flatMap { case (iceberg, table) =>
      planner.columns(table.id, table.lineage)(_ => new OutputColumns(iceberg.output, table.keys.get))
    }

  // A sub-query's relations were prepared, and are scans, when the query around it is planned.
  private def scanned(relation: LogicalPlan): Option[(DataSourceV2Relation, IcebergScan)] = relation match {
    case scan: DataSourceV2ScanRelation => scanned(scan.relation)
    case iceberg: DataSourceV2Relation =>
      val table = DelegateProxy.unwrap(RowLevelTarget.tableOf(iceberg.table))
      Optional.when(isSupported(table))((iceberg, new IcebergScan(table)))
    case _ => None
  }

  private def interceptorOf(
      table: IcebergScan,
      iceberg: DataSourceV2Relation,
      above: ScanContext,
      planner: ScanPlanner): IcebergInterceptor =
    planner.restriction match {
      case Some(why) if planner.leavesAlone => new IcebergPassThrough(table.name, why, harmless = false)
      case _ if isIncremental(iceberg) =>
        new IcebergPassThrough(table.name, Reason(ReasonCode.Incremental), planner.estimates)
      case _ => new IcebergPruning(table, iceberg.output, above, planner)
    }

}

private[scan] object IcebergAdapter extends ScanFormat {
  override val adapter: Option[RelationAdapter] = Some(new IcebergAdapter)

  override def findsFiles(subquery: LogicalPlan, target: Option[Table]): Boolean = target match {
    case None => IcebergCommand.findsFiles(subquery, None)
    case Some(table) =>
      IcebergScan.fromTable(table).exists(own => IcebergCommand.findsFiles(subquery, Some(own)))
  }

  override def prepareTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan =
    InsertingMerge.fromPlan(command) match {
      case Some(merge) => prepareReads(merge, merge.pruning(planner.settings), planner).getOrElse(command)
      case None => prepareRowLevel(command, planner)
    }

  private def prepareReads(
      merge: InsertingMerge,
      allowed: RowLevelPruning,
      planner: ScanPlanner): Option[LogicalPlan] =
    if (!allowed.byConditions || planner.leavesAlone) None
    else Some(merge.replaceReads { (target, plan) =>
      if (!isSupported(target.table) || isIncremental(target)) target
      else {
        val above = ScanContext(RowFilters.above(target, plan))
        proxyBefore(
          target,
          new IcebergPruning(
            new IcebergScan(target.table),
            target.output,
            above,
            planner.ofCommand(allowed)))
      }
    })

  private def prepareRowLevel(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan =
    RowLevelTarget.replace(command) { (table, operation) =>
      for {
        iceberg <- IcebergScan.fromTable(table)
        if DelegateProxy.fromProxy(operation).isEmpty // the optimizer may see a plan twice
        scans <- new IcebergCommand(iceberg, command, operation).scans(planner)
      } yield DelegateProxy.create(new IcebergSourceProxy(operation, scans), classOf[RowLevelOperation])
    }

  private val incremental = Seq(
    "start-snapshot-id",
    "end-snapshot-id",
    "start-timestamp",
    "end-timestamp",
    "scan-task-set-id",
    "file-scan-task-set-id")

  private def isSupported(table: Table): Boolean =
    IcebergTable.is(table) && FormatReleases.refusal(table).isEmpty

  private def proxyBefore(relation: DataSourceV2Relation, interceptor: IcebergInterceptor): LogicalPlan = {
    val proxy = DelegateProxy.create(new IcebergSourceProxy(relation.table, interceptor), classOf[Table])
    WithTags(relation.copy(table = proxy), relation)
  }

  private def isIncremental(relation: DataSourceV2Relation): Boolean =
    incremental.exists(relation.options.containsKey(_))
}

/** A scan that was built to list its files. */
private final class IcebergPlannedScan(
    iceberg: DataSourceV2Relation,
    scan: Scan,
    output: Seq[AttributeReference],
    tasks: IcebergTasks,
    val scanned: ScannedFiles) {

  /** The scan of the files that are to be read, and no others: its snapshot and its tasks are fixed from now on. */
  def scanOfRest(decision: ScanDecision): Option[LogicalPlan] = {
    tasks.at(tasks.files.indices.filter(decision.survivors.get)).giveTo(scan)
    val pruned =
      IcebergScanProxy.before(
        scan,
        decision,
        own => V2Statistics.withoutColumns(own, scan.readSchema, None),
        Some(tasks))
    Some(CaseClassCopy.create(
      classOf[DataSourceV2ScanRelation],
      "relation" -> iceberg,
      "scan" -> pruned,
      "output" -> output))
  }
}
