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

  override def prepare(
      relation: LogicalPlan,
      context: ScanContext,
      planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case metadata: DataSourceV2Relation if IcebergTable.isMetadataTable(metadata.table) =>
        val reason = Reason(ReasonCode.MetadataTable)
        Some(proxyBefore(metadata, new IcebergPassThrough(metadata.table.name, reason, hidesNumbers = false)))
      case iceberg: DataSourceV2Relation if IcebergTable.is(iceberg.table) =>
        val interceptor = FormatReleases.refusal(iceberg.table) match {
          case Some(reason) => new IcebergPassThrough(iceberg.table.name, reason, hidesNumbers = false)
          case None => interceptorOf(new IcebergScan(iceberg.table), iceberg, context, planner)
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

  /** Plans the scan as Spark will build it if the aggregate stays: equal scans share their planning. */
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
      // The plan above expects whole structs.
      val areWhole = output.forall(column =>
        iceberg.output.exists(other => other.exprId == column.exprId && other.dataType == column.dataType))
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

  // When a query is planned, the relations of its sub-queries are scans already.
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
      context: ScanContext,
      planner: ScanPlanner): IcebergInterceptor =
    planner.restriction match {
      case Some(reason) if planner.leavesAlone =>
        new IcebergPassThrough(table.name, reason, hidesNumbers = false)
      case _ if isIncremental(iceberg) =>
        new IcebergPassThrough(table.name, Reason(ReasonCode.Incremental), planner.estimates)
      case _ => new IcebergPruning(table, iceberg.output, context, planner)
    }
}

private[scan] object IcebergAdapter extends ScanFormat {
  override val adapter: Option[RelationAdapter] = Some(new IcebergAdapter)

  override def findsFiles(subquery: LogicalPlan): Boolean = IcebergCommand.findsFiles(subquery, _ => true)

  override def findsFiles(subquery: LogicalPlan, target: Table): Boolean =
    IcebergScan.fromTable(target).exists(table => IcebergCommand.findsFiles(subquery, table.isSameSnapshot))

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
        val context = ScanContext(RowFilters.above(target, plan))
        proxyBefore(
          target,
          new IcebergPruning(
            new IcebergScan(target.table),
            target.output,
            context,
            planner.forCommand(allowed)))
      }
    })

  private def prepareRowLevel(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan =
    RowLevelTarget.replace(command) { (table, operation) =>
      for {
        iceberg <- IcebergScan.fromTable(table)
        if DelegateProxy.fromProxy(operation).isEmpty // the optimizer may run twice on a plan
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

/** A scan that is built only to list its files. */
private final class IcebergPlannedScan(
    iceberg: DataSourceV2Relation,
    scan: Scan,
    output: Seq[AttributeReference],
    tasks: IcebergTasks,
    val scanned: ScannedFiles) {

  /** Makes the scan of the unanswered files. Its snapshot and its tasks are fixed from now on. */
  def scanOfRest(decision: ScanDecision): Option[LogicalPlan] = {
    tasks.at(tasks.files.indices.filter(decision.survivors.get)).giveTo(scan)
    val pruned =
      IcebergScanProxy.before(
        scan,
        decision,
        statistics => V2Statistics.withoutColumns(statistics, scan.readSchema, None),
        Some(tasks))
    Some(CaseClassCopy.create(
      classOf[DataSourceV2ScanRelation],
      "relation" -> iceberg,
      "scan" -> pruned,
      "output" -> output))
  }
}
