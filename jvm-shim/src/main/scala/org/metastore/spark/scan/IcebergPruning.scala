package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, EqualTo, Expression, Literal, MetadataAttribute
}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.metastore.PushedPredicates
import org.apache.spark.sql.types.{StringType, StructType}

import org.metastore.spark.estimates.V2Statistics
import org.metastore.spark.pruning.{LiteralList, ScanDecision}
import org.metastore.spark.reason.{Indexed, Reason, ReasonCode, Recoverable}
import org.metastore.spark.tables.{IcebergMembers, IcebergTable}

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
        for {
          key <- keys.get(name)
          known <- columns
          found <- known.histogram(key, dataType)
        } yield found,
      keys.get(_).exists(key => table.holdsUuids(key) && isAnalyzed(key)))
  }

  override def keepsFromFormat(predicate: Predicate): Boolean =
    planner.restriction.isEmpty && planner.settings.icebergBypassSkipping &&
      ScanPlanner.recover(s"What Iceberg skips of ${table.name}", false)(skipping.losesRows(predicate))

  /** Prunes a scan, and stands before it. */
  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan.getClass.getName match {
    case IcebergMembers.QueryScanClass => pruneScan(scan, pushed)
    case name => leftAlone(
        scan,
        Reason(ReasonCode.UnsupportedTable, "relation" -> table.name, "detail" -> name.split('.').last))
  }

  private def leftAlone(scan: AnyRef, why: Reason): AnyRef =
    new IcebergPassThrough(table.name, why, planner.estimates).prepare(scan, PushedPredicates())

  private def pruneScan(scan: AnyRef, pushed: PushedPredicates): AnyRef =
    try {
      val all = IcebergTasks.fromScan(scan, table.snapshot, planner)
      val tasks = filesOfQuery.fold(all)(all.selectPaths)
      val schema = table.schemaOf(scan)
      val live = table.live(
        if (filesOfQuery.isEmpty) IcebergTable.title else "the query",
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
      val counts = Indexed.all(kept.map(tasks.files(_).rows))
      val rows = counts.map(_.map(_.toDouble).sum)
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
    if (planner.restriction.isEmpty) FileColumnFilter.by(conjuncts, output)
    else None

  private def readSchema(scan: AnyRef): StructType = scan.asInstanceOf[Scan].readSchema
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
  private def texts(values: Seq[Any]): Set[String] = Indexed.set(values.filter(_ != null))(_.toString)
}
