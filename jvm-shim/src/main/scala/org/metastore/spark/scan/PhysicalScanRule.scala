package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Attempt, Reason}

/**
 * Drops files from the physical scans of marked file relations, and adds the decision to their names. It runs
 * when adaptive execution prepares its first plan, so that EXPLAIN shows the decision. For all other plans it
 * runs as a columnar rule. A second run changes nothing.
 */
final class PhysicalScanRule(session: SparkSession) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    ScanPlanner.recover("A query", plan) {
      JoinKeyFilter.moveToScans(plan).transformUp {
        case scan: FileSourceScanExec => withKeys(JoinKeyFilter.bind(pruneOrLeave(scan, planner)))
        case scan: BatchScanExec => JoinKeyFilter.bind(scan)
      }
    }
  }

  /** Drops files from the scans of a plan, and ignores filters by join keys. */
  private[scan] def prune(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    plan.transformUp { case scan: FileSourceScanExec => pruneOrLeave(scan, planner) }
  }

  /** Gives the scan's index the keys of the scan's own filters. */
  private def withKeys(scan: FileSourceScanExec): FileSourceScanExec =
    (IndexStandIn.behind(scan.relation.location), JoinKeyFilter.valuesOf(scan)) match {
      case (index: PruningFileIndex, keys) if keys != index.keys =>
        val relation = FileScan.withLocation(scan.relation, index.withKeys(keys).recognizable)
        WithTags(CaseClassCopy(scan, "relation" -> relation), scan)
      case _ => scan
    }

  private def pruneOrLeave(scan: FileSourceScanExec, planner: => ScanPlanner): FileSourceScanExec =
    Attempt.recover(if (isDone(scan)) scan else pruneOnce(scan, planner)) { failure =>
      ScanPlanner.warn(scan.nodeName, Reason.failure(failure), failure)
      scan
    }

  private def pruneOnce(scan: FileSourceScanExec, planner: => ScanPlanner): FileSourceScanExec =
    (scan.relation.location, ScanMark.fromRelation(scan.relation)) match {
      case (fixed: FixedFileIndex, _) =>
        val location = ScanFormats.recognizable(fixed, scan.relation)
        withLabel(scan, FileScan.withLocation(scan.relation, location), fixed.decision.label)
      case (_, Some(ScanMark.Refusal(_, reason))) => withLabel(scan, scan.relation, s"[Metastore: $reason]")
      case (_, Some(permit: ScanMark.Permit)) =>
        ScanFormats.findMarkedTable(
          scan.relation,
          permit.root,
          scan.tableIdentifier.map(_.unquotedString)) match {
          case Some(table) => pruneTable(scan, table, permit, planner)
          case None => scan
        }
      case (_, None) => scan
    }

  private def pruneTable(
      scan: FileSourceScanExec,
      table: FileScan,
      permit: ScanMark.Permit,
      planner: ScanPlanner): FileSourceScanExec = {
    val relation = scan.relation
    planner.statistics(table.id, Some(permit.fingerprint)) match {
      case Right(statistics) if statistics.fingerprint == permit.fingerprint =>
        val areFixed = (scan.partitionFilters ++ scan.dataFilters).forall(PruningFileIndex.isFixed)
        val wanted = if (areFixed) permit.wanted else None
        val index = new PruningFileIndex(
          relation.location,
          table,
          scan.tableIdentifier,
          statistics.manifest,
          wanted,
          planner)
        val decision = index.decision(scan)
        withLabel(scan, FileScan.withLocation(relation, index.recognizable), decision.label)
      case Right(_) =>
        withLabel(scan, relation, "[Metastore: the statistics changed while the query was planned]")
      case Left(reason) => withLabel(scan, relation, s"[Metastore: ${reason.sentence}]")
    }
  }

  private def withLabel(
      scan: FileSourceScanExec,
      relation: HadoopFsRelation,
      label: String): FileSourceScanExec = {
    val named = scan.tableIdentifier.getOrElse(TableIdentifier(
      relation.location.rootPaths.head.toString,
      Some(ScanFormats.formatName(scan.relation))))
    val labelled = named.copy(table = s"${named.table} $label")
    WithTags(CaseClassCopy(scan, "relation" -> relation, "tableIdentifier" -> Some(labelled)), scan)
  }

  private def isDone(scan: FileSourceScanExec): Boolean = {
    val isPruned = IndexStandIn.behind(scan.relation.location).isInstanceOf[PruningFileIndex]
    isPruned || scan.tableIdentifier.exists(_.table.contains(PhysicalScanRule.Label))
  }
}

private[scan] object PhysicalScanRule {
  private val Label = " [Metastore: "

  /** The name of a scan's table, without our label. */
  def tableOf(scan: FileSourceScanExec): String = scan.tableIdentifier match {
    case Some(TableIdentifier(name, format, _)) if withoutLabel(name).contains('/') =>
      s"${format.fold("")(_ + ".")}`${withoutLabel(name)}`"
    case Some(named) => named.copy(table = withoutLabel(named.table)).unquotedString
    case None => scan.relation.location.rootPaths.mkString(", ")
  }

  private def withoutLabel(name: String): String =
    if (name.contains(Label)) name.substring(0, name.indexOf(Label)) else name
}

/** Runs the rule on plans that adaptive execution does not touch. */
final class PhysicalScanColumnarRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new PhysicalScanRule(session)
}
