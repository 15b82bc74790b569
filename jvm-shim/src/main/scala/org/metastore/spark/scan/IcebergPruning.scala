package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, EqualTo, Expression, Literal, MetadataAttribute
}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, Statistics}
import org.apache.spark.sql.metastore.PushedPredicates
import org.apache.spark.sql.types.StringType

import org.metastore.spark.estimates.{ScanStatistics, V2Statistics}
import org.metastore.spark.pruning.{LiteralList, ScanDecision}
import org.metastore.spark.reason.{Attempt, Indexed, Optional, Reason, ReasonCode}
import org.metastore.spark.tables.{IcebergMembers, IcebergTable}

/** Prunes the scans of one Iceberg relation. */
private[scan] final class IcebergPruning(
    table: IcebergScan,
    output: Seq[AttributeReference],
    context: ScanContext,
    planner: ScanPlanner)
  extends IcebergInterceptor {
  import context.conjuncts

  override val fingerprint: AnyRef =
    (
      (conjuncts ++ context.order).map(QueryPlan.normalizeExpressions(_, output).canonicalized),
      context.order.isDefined,
      context.limit,
      planner.restriction,
      planner.takesKeys,
      planner.estimates)

  private lazy val skipping = {
    lazy val keys = table.keys
    lazy val columns =
      planner.columns(table.id, table.lineage)(_ => new OutputColumns(output, keys.get))
    def isAnalyzed(key: String) =
      planner.statistics(table.id).exists(_.manifest.blocks.exists(_.columnsOf(key).nonEmpty))
    new IcebergSkipping(
      conjuncts,
      output,
      (name, dataType) =>
        for {
          key <- keys.get(name)
          relationColumns <- columns
          histogram <- relationColumns.histogram(key, dataType)
        } yield histogram,
      keys.get(_).exists(key => table.holdsUuids(key) && isAnalyzed(key)))
  }

  override def keepsFromFormat(predicate: Predicate): Boolean =
    planner.restriction.isEmpty && planner.settings.icebergBypassSkipping &&
      ScanPlanner.recover(s"What Iceberg skips of ${table.name}", false)(skipping.losesRows(predicate))

  /** Prunes a scan and puts a proxy before it. */
  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = scan.getClass.getName match {
    case IcebergMembers.QueryScanClass => pruneOrLeave(scan, pushed)
    case name =>
      val detail = name.split('.').last
      leaveAlone(scan, Reason(ReasonCode.UnsupportedTable, "relation" -> table.name, "detail" -> detail))
  }

  private def leaveAlone(scan: AnyRef, reason: Reason): AnyRef =
    new IcebergPassThrough(table.name, reason, planner.estimates).prepare(scan, PushedPredicates())

  private def pruneOrLeave(scan: AnyRef, pushed: PushedPredicates): AnyRef =
    Attempt.recover(pruneScan(scan, pushed)) { failure =>
      val reason = Reason.failure(failure)
      ScanPlanner.warn(table.name, reason, failure)
      leaveAlone(scan, reason)
    }

  private def pruneScan(scan: AnyRef, pushed: PushedPredicates): AnyRef = {
    val all = IcebergTasks.fromScan(scan, table.snapshot, planner)
    val tasks = filesOfQuery.fold(all)(all.selectPaths)
    val keyOf = table.keysOf(scan)
    val scanned = scannedFiles(scan, tasks, keyOf, all.live, pushed)
    val wanted = planner.wantedRows(table.id, context)(_ => scanned.resolver)
    val estimate = EstimateRequest(output, scanned.resolver, () => table.lineage, pushed.isTaken)
    val planned = planner.plan(scanned, ScanRequest(conjuncts, wanted), Some(estimate))
    val decision = planned.decision
    val survivors = tasks.files.indices.filter(decision.survivors.get)
    if (survivors.size < all.tasks.size) tasks.at(survivors).giveTo(scan)
    IcebergScanProxy.before(
      scan,
      decision,
      statistics =>
        if (planner.estimates)
          estimateStatistics(scan, statistics, rowsOf(tasks, survivors), planned.numbers, keyOf)
        else statistics(),
      Some(all),
      joinOf(scanned, decision))
  }

  private def scannedFiles(
      scan: AnyRef,
      tasks: IcebergTasks,
      keyOf: Seq[String] => Option[String],
      number: Option[Long],
      pushed: PushedPredicates): ScannedFiles = {
    val by = if (filesOfQuery.isEmpty) IcebergTable.title else "the query"
    ScannedFiles(
      table.id,
      planner.countTime(tasks.files),
      new OutputColumns(output, keyOf),
      table.live(by, scan, number, pushed.unasked))
  }

  /** The number of rows in these tasks, or None if Iceberg does not know it for each of them. */
  private def rowsOf(tasks: IcebergTasks, positions: Seq[Int]): Option[Double] =
    for (counts <- Indexed.all(positions.map(tasks.files(_).rows))) yield counts.map(_.toDouble).sum

  private def estimateStatistics(
      scan: AnyRef,
      formatStatistics: () => Statistics,
      rows: Option[Double],
      numbers: Option[ScanStatistics],
      keyOf: Seq[String] => Option[String]): Statistics =
    planner.countTime {
      val schema = scan.asInstanceOf[Scan].readSchema
      // Once planning is late, the optimizer gets no more columns.
      V2Statistics.answer(
        formatStatistics,
        schema,
        rows,
        numbers,
        name => if (planner.isLate) None else keyOf(Seq(name)))
    }

  private def joinOf(scanned: ScannedFiles, decision: ScanDecision): Option[IcebergJoin] = {
    def decide(keys: Seq[Expression]): ScanDecision =
      planner.plan(scanned, ScanRequest(conjuncts ++ keys, isJoined = true)).decision
    Optional.when(planner.takesKeys && decision.version.nonEmpty && context.limit.isEmpty)(new IcebergJoin(
      output,
      decide))
  }

  private def filesOfQuery: Option[Set[String]] =
    if (planner.restriction.isEmpty) FileColumnFilter.by(conjuncts, output)
    else None
}

/** Finds the data files that a query names by Iceberg's metadata column `_file`. */
private[scan] object FileColumnFilter {
  private val Column = "_file"

  /** The paths of all files that can match, or None if the query names no files. */
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
