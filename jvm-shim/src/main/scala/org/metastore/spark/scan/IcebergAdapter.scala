package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, EqualTo, Expression, Literal, MetadataAttribute, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.connector.write.RowLevelOperation
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation, DataSourceV2ScanRelation, PushDownUtils
}
import org.apache.spark.sql.metastore.{PushedPredicates, RowLevelTarget}
import org.apache.spark.sql.types.{StringType, StructType}

import org.metastore.spark.estimates.{RelationColumns, V2Statistics}
import org.metastore.spark.pruning.{ColumnResolver, LiteralList, ScanDecision}
import org.metastore.spark.reason.{Reason, ReasonCode, Recoverable}
import org.metastore.spark.statistics.objects.TableIdentity
import org.metastore.spark.tables.{DelegateProxy, FormatReleases, IcebergTable}

/** Iceberg tables: stand-ins before table, scan builder and scan, put in place before Iceberg's own push-down. */
private[scan] final class IcebergAdapter extends RelationAdapter {

  override def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan] =
    relation match {
      case metadata: DataSourceV2Relation if IcebergTable.isMetadataTable(metadata.table) =>
        Some(before(
          metadata,
          new IcebergPassThrough(metadata.table.name, Reason(ReasonCode.MetadataTable), harmless = false)))
      case iceberg: DataSourceV2Relation if IcebergTable.is(iceberg.table) =>
        val scans = FormatReleases.refusal(iceberg.table).map(new IcebergPassThrough(
          iceberg.table.name,
          _,
          harmless = false))
        Some(before(
          iceberg,
          scans.getOrElse(scansOf(new IcebergScan(iceberg.table), iceberg, above, planner))))
      case _ => None
    }

  override def answer(
      relation: LogicalPlan,
      asked: AggregateRequest,
      planner: ScanPlanner): Option[MeasuredScan] = relation match {
    case iceberg: DataSourceV2Relation
        if IcebergTable.is(iceberg.table) && FormatReleases.refusal(
          iceberg.table).isEmpty && !IcebergAdapter.isIncremental(iceberg) =>
      val table = new IcebergScan(iceberg.table)
      for {
        _ <- planner.statistics(table.id).toOption
        planned <- planScan(table, iceberg, asked, planner)
        measured <- planner.measure(planned.scanned, asked)
        answer <- measured.reading(planned.scanOfRest(measured.decision))
      } yield answer
    case _ => None
  }

  /** A scan as Spark will build it, if the aggregate stays: equal scans share their planning. */
  private def planScan(
      table: IcebergScan,
      iceberg: DataSourceV2Relation,
      asked: AggregateRequest,
      planner: ScanPlanner): Option[IcebergPlannedScan] = {
    val listing =
      new IcebergListing(new IcebergPruning(table, iceberg.output, ScanContext(asked.conjuncts), planner))
    val source = DelegateProxy.create(new IcebergSourceProxy(iceberg.table, listing), classOf[Table])
    val builder = source.asInstanceOf[SupportsRead].newScanBuilder(iceberg.options)
    PushedPredicates.push(builder, asked.conjuncts.filterNot(SubqueryExpression.hasSubquery))
    val (scan, output) = PushDownUtils.pruneColumns(builder, iceberg, asked.columns, asked.conjuncts)
    if (scan.getClass.getName != IcebergTable.QueryScanClass) None
    else {
      val tasks = IcebergTasks.of(scan, table.snapshot, planner)
      val schema = table.schemaOf(scan)
      val columns = new OutputColumns(iceberg.output, path => schema.flatMap(_.key(path)))
      // Of a struct that is read in part the plan above would have to be told.
      val areChosen = output.forall(column =>
        iceberg.output.exists(own => own.exprId == column.exprId && own.dataType == column.dataType))
      val live = table.live(IcebergAdapter.Name, scan, tasks.live, listing.unasked)
      Some(new IcebergPlannedScan(
        iceberg,
        scan,
        output,
        tasks,
        ScannedFiles(table.id, tasks.files, columns, live, areChosen)))
    }
  }

  override def table(relation: LogicalPlan): Option[TableIdentity] = scanned(relation).map(_._2.id)

  override def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns] =
    for ((iceberg, table) <- scanned(relation); known <- planner.statistics(table.id).toOption)
      yield planner.columns(table.id, known, new OutputColumns(iceberg.output, table.keys.get), table.lineage)

  // A sub-query's relations were prepared, and are scans, when the query around it is planned.
  private def scanned(relation: LogicalPlan): Option[(DataSourceV2Relation, IcebergScan)] = relation match {
    case scan: DataSourceV2ScanRelation => scanned(scan.relation)
    case iceberg: DataSourceV2Relation =>
      val table = DelegateProxy.of(iceberg.table).fold(iceberg.table)(_.delegate.asInstanceOf[Table])
      if (IcebergTable.is(table) && FormatReleases.refusal(table).isEmpty)
        Some(iceberg -> new IcebergScan(table))
      else None
    case _ => None
  }

  private def scansOf(
      table: IcebergScan,
      iceberg: DataSourceV2Relation,
      above: ScanContext,
      planner: ScanPlanner): IcebergInterceptor =
    planner.restriction match {
      case Some(why) if planner.leavesAlone => new IcebergPassThrough(table.name, why, harmless = false)
      case _ if IcebergAdapter.isIncremental(iceberg) =>
        new IcebergPassThrough(table.name, Reason(ReasonCode.Incremental), planner.estimates)
      case _ => new IcebergPruning(table, iceberg.output, above, planner)
    }

  private def before(relation: DataSourceV2Relation, scans: IcebergInterceptor): LogicalPlan =
    WithTags(
      relation.copy(table =
        DelegateProxy.create(new IcebergSourceProxy(relation.table, scans), classOf[Table])),
      relation)
}

private[scan] object IcebergAdapter {
  private[scan] val Name = "Iceberg"

  /** Keeps the table format's numbers of a command's own target away from the optimizer; every file of it is read. */
  def shieldTarget(command: V2WriteCommand, planner: ScanPlanner): LogicalPlan =
    if (!planner.estimates) command
    else RowLevelTarget.replace(command) { (table, operation) =>
      IcebergScan.of(table).map { iceberg =>
        val why = Reason(ReasonCode.RowLevelCommand, "command" -> operation.command.toString)
        val shield = new IcebergPassThrough(iceberg.name, why, planner.estimates)
        DelegateProxy.create(new IcebergSourceProxy(operation, shield), classOf[RowLevelOperation])
      }
    }

  private val incremental = Seq(
    "start-snapshot-id",
    "end-snapshot-id",
    "start-timestamp",
    "end-timestamp",
    "scan-task-set-id",
    "file-scan-task-set-id")

  private def isIncremental(relation: DataSourceV2Relation): Boolean =
    incremental.exists(relation.options.containsKey(_))
}

/** What is done to the scans of one Iceberg relation when Iceberg has built them. */
private[scan] trait IcebergInterceptor {

  /** Relations that are treated alike are equal: Spark recognises equal parts of a plan by it. */
  def fingerprint: AnyRef

  /** Whether Iceberg is not to skip by a predicate: Spark evaluates it on each row. */
  def keepsFromFormat(predicate: Predicate): Boolean = false

  /** What is planned in place of a scan that Iceberg built. */
  def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef
}

/** A scan that was built to look at its files. */
private final class IcebergPlannedScan(
    iceberg: DataSourceV2Relation,
    scan: Scan,
    output: Seq[AttributeReference],
    tasks: IcebergTasks,
    val scanned: ScannedFiles) {

  /** The scan of those files alone that are to be read: it has its snapshot and its tasks from now on. */
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

/** Scans whose files are looked at: Iceberg is asked as for others, and what it builds stays as it is. */
private final class IcebergListing(others: IcebergInterceptor) extends IcebergInterceptor {
  private var kept = Seq.empty[Predicate]

  /** The predicates that Iceberg was not asked about. */
  def unasked: Seq[Predicate] = kept

  override def fingerprint: AnyRef = others.fingerprint
  override def keepsFromFormat(predicate: Predicate): Boolean = others.keepsFromFormat(predicate)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = {
    kept = pushed.unasked
    scan
  }
}

/** Scans of which no file is dropped, for a reason; where `harmless`, the optimizer does not get the table format's numbers. */
private[scan] final class IcebergPassThrough(table: String, why: Reason, harmless: Boolean)
  extends IcebergInterceptor {

  override val fingerprint: AnyRef = (why, harmless)

  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan match {
    case _: LocalScan => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, Reason(ReasonCode.AnsweredByFormat)),
        _())
    case _ => IcebergScanProxy.before(
        scan,
        ScanDecision.withoutPruning(table, why),
        own =>
          if (harmless) V2Statistics.withoutColumns(own, scan.asInstanceOf[Scan].readSchema, None) else own())
  }
}

/** What the planner wants of one Iceberg relation. */
private[scan] final class IcebergPruning(
    table: IcebergScan,
    output: Seq[AttributeReference],
    above: ScanContext,
    planner: ScanPlanner)
  extends IcebergInterceptor {
  import above.conjuncts

  override val fingerprint: AnyRef =
    (
      (conjuncts ++ above.order).map(QueryPlan.normalizeExpressions(_, output).canonicalized),
      above.order.isDefined,
      above.limit,
      planner.restriction,
      planner.estimates)

  private lazy val skipping = {
    lazy val keys = table.keys
    lazy val columns = planner.statistics(table.id).toOption.map { known =>
      planner.columns(table.id, known, new OutputColumns(output, keys.get), table.lineage)
    }
    def isAnalyzed(key: String) =
      planner.statistics(table.id).exists(_.manifest.blocks.exists(_.columnsOf(key).nonEmpty))
    new IcebergSkipping(
      conjuncts,
      output,
      (name, dataType) =>
        for (key <- keys.get(name); known <- columns; found <- known.histogram(key, dataType)) yield found,
      keys.get(_).exists(key => table.holdsUuids(key) && isAnalyzed(key)))
  }

  override def keepsFromFormat(predicate: Predicate): Boolean =
    planner.restriction.isEmpty && planner.settings.icebergBypassSkipping &&
      ScanPlanner.orElse(s"What Iceberg skips of ${table.name}", false)(skipping.losesRows(predicate))

  /** Prunes a scan, and stands before it. */
  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan.getClass.getName match {
    case IcebergTable.QueryScanClass => pruneScan(scan, pushed)
    case name => leftAlone(
        scan,
        Reason(ReasonCode.UnsupportedTable, "relation" -> table.name, "detail" -> name.split('.').last))
  }

  private def leftAlone(scan: AnyRef, why: Reason): AnyRef =
    new IcebergPassThrough(table.name, why, planner.estimates).prepare(scan, PushedPredicates())

  private def pruneScan(scan: AnyRef, pushed: PushedPredicates): AnyRef =
    try {
      val all = IcebergTasks.of(scan, table.snapshot, planner)
      val tasks = filesOfQuery.fold(all)(all.selectPaths)
      val schema = table.schemaOf(scan)
      val live = table.live(
        if (filesOfQuery.isEmpty) IcebergAdapter.Name else "the query",
        scan,
        all.live,
        pushed.unasked)
      val columns = new OutputColumns(output, path => schema.flatMap(_.key(path)))
      val files = planner.countTime(tasks.files)
      def plan(request: ScanRequest, asked: Option[EstimateRequest]) =
        planner.plan(table.id, files, request, columns, live, asked)
      val wanted = planner.statistics(table.id).toOption.flatMap(known =>
        above.wanted(planner.columnsOf(known, columns)))
      // Of more columns the optimizer is told nothing once time is up.
      def keyOf(name: String) = if (planner.isLate) None else schema.flatMap(_.key(Seq(name)))
      val planned =
        plan(
          ScanRequest(conjuncts, wanted),
          Some(EstimateRequest(output, columns, () => table.lineage, pushed.isTaken)))
      val decision = planned.decision
      val kept = tasks.files.indices.filter(decision.survivors.get)
      if (kept.size < all.tasks.size) tasks.at(kept).giveTo(scan)
      val counted = kept.map(tasks.files(_).rows)
      val rows = if (counted.forall(_.isDefined)) Some(counted.flatten.map(_.toDouble).sum) else None
      IcebergScanProxy.before(
        scan,
        decision,
        own =>
          if (!planner.estimates) own()
          else planner.countTime(V2Statistics.answer(own, readSchema(scan), rows, planned.numbers, keyOf)),
        Some(all),
        joinOf(decision)(keys => plan(ScanRequest(conjuncts ++ keys, isJoined = true), None).decision))
    } catch {
      case Recoverable(e) =>
        val why = Reason.failure(e)
        ScanPlanner.warn(table.name, why, e)
        leftAlone(scan, why)
    }

  private def joinOf(decision: ScanDecision)(decide: Seq[Expression] => ScanDecision): Option[IcebergJoin] =
    if (planner.restriction.isEmpty && decision.version.nonEmpty && above.limit.isEmpty)
      Some(new IcebergJoin(output, decide))
    else None

  private def filesOfQuery: Option[Set[String]] =
    if (planner.restriction.isEmpty) FileColumnFilter.by(conjuncts, output) else None

  private def readSchema(scan: AnyRef): StructType = scan.asInstanceOf[Scan].readSchema
}

/** Columns by the relation's own names: in a query they stand as the user wrote them, in any case. */
private final class OutputColumns(output: Seq[AttributeReference], keyOf: Seq[String] => Option[String])
  extends ColumnResolver {
  override def key(root: Attribute, path: Seq[String]): Option[String] =
    output.find(_.exprId == root.exprId).flatMap(column => keyOf(column.name +: path))
}

/** The data files that a query itself names, by Iceberg's metadata column `_file`: rows of other files cannot match. */
private[scan] object FileColumnFilter {
  private val Column = "_file"

  /** The paths that every row of the scan comes from; None where the query names no files. */
  def by(conjuncts: Seq[Expression], output: Seq[AttributeReference]): Option[Set[String]] = {
    val files =
      output.filter(column =>
        column.name == Column && column.dataType == StringType && MetadataAttribute.isValid(column.metadata))
    def isFile(expression: Expression) = files.exists(_.semanticEquals(expression))
    conjuncts.collect {
      case EqualTo(file, Literal(path, StringType)) if isFile(file) => texts(Seq(path))
      case EqualTo(Literal(path, StringType), file) if isFile(file) => texts(Seq(path))
      case LiteralList(file, paths) if isFile(file) => texts(paths)
    }.reduceOption(_ intersect _)
  }

  // Null equals nothing.
  private def texts(values: Seq[Any]): Set[String] = values.filter(_ != null).map(_.toString).toSet
}
