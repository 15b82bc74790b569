package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Reason, Recoverable}

/**
 * Drops files from the physical scans of marked file relations, and writes the decision on them. It runs where adaptive
 * execution prepares its first plan, so that EXPLAIN shows it, and for all other plans as a columnar rule; twice is harmless.
 */
final class PhysicalScanRule(session: SparkSession) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    ScanPlanner.recover("A query", plan) {
      JoinKeyFilter.moveToScans(plan).transformUp {
        case scan: FileSourceScanExec => withKeys(JoinKeyFilter.bind(marked(scan, planner).getOrElse(scan)))
        case scan: BatchScanExec => JoinKeyFilter.bind(scan)
      }
    }
  }

  /** The same plan with files dropped from its scans; filters by join keys are left to the rule itself. */
  private[scan] def prune(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    plan.transformUp { case scan: FileSourceScanExec => marked(scan, planner).getOrElse(scan) }
  }

  /** The scan with an index that knows what the scan's own filters collect. */
  private def withKeys(scan: FileSourceScanExec): FileSourceScanExec =
    (IndexStandIn.behind(scan.relation.location), JoinKeyFilter.valuesOf(scan)) match {
      case (index: PruningFileIndex, keys) if keys != index.keys =>
        withRelation(scan, index.withKeys(keys).recognizable)
      case _ => scan
    }

  private def withRelation(scan: FileSourceScanExec, location: FileIndex): FileSourceScanExec =
    WithTags(
      CaseClassCopy(scan, "relation" -> scan.relation.copy(location = location)(scan.relation.sparkSession)),
      scan)

  private def marked(scan: FileSourceScanExec, planner: => ScanPlanner): Option[FileSourceScanExec] =
    try scan.relation.location match {
        case _ if isDone(scan) => None
        case fixed: FixedFileIndex =>
          val location = ScanFormats.recognizable(fixed, scan.relation)
          Some(withLabel(
            scan,
            scan.relation.copy(location = location)(scan.relation.sparkSession),
            fixed.decision.label))
        case _ => ScanMark.find(scan.relation).flatMap {
            case ScanMark.Refusal(_, why) => Some(withLabel(scan, scan.relation, s"[Metastore: $why]"))
            case allowed: ScanMark.Permit => pruned(scan, allowed, planner)
          }
      }
    catch {
      case Recoverable(e) =>
        ScanPlanner.warn(scan.nodeName, Reason.failure(e), e)
        None
    }

  private def pruned(
      scan: FileSourceScanExec,
      allowed: ScanMark.Permit,
      planner: ScanPlanner): Option[FileSourceScanExec] = {
    val relation = scan.relation
    ScanFormats.findMarkedTable(relation, allowed.root, scan.tableIdentifier.map(_.unquotedString)).map {
      table =>
        planner.statistics(table.id, Some(allowed.fingerprint)) match {
          case Right(known) if known.fingerprint == allowed.fingerprint =>
            val wanted = allowed.wanted.filter(_ =>
              (scan.partitionFilters ++ scan.dataFilters).forall(PruningFileIndex.isFixed))
            val index = new PruningFileIndex(
              relation.location,
              table,
              scan.tableIdentifier,
              known.manifest,
              wanted,
              planner)
            val decision = index.decision(scan)
            withLabel(
              scan,
              relation.copy(location = index.recognizable)(relation.sparkSession),
              decision.label)
          case Right(_) =>
            withLabel(scan, relation, "[Metastore: the statistics changed while the query was planned]")
          case Left(why) => withLabel(scan, relation, s"[Metastore: ${why.sentence}]")
        }
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

  private def isDone(scan: FileSourceScanExec): Boolean =
    IndexStandIn.behind(scan.relation.location).isInstanceOf[PruningFileIndex] || scan.tableIdentifier.exists(
      _.table.contains(PhysicalScanRule.Label))
}

private[scan] object PhysicalScanRule {
  private val Label = " [Metastore: "

  /** The name of a scan's table, without what was written behind it. */
  def tableOf(scan: FileSourceScanExec): String = scan.tableIdentifier match {
    case Some(TableIdentifier(name, format, _)) if withoutLabel(name).contains('/') =>
      s"${format.fold("")(_ + ".")}`${withoutLabel(name)}`"
    case Some(named) => named.copy(table = withoutLabel(named.table)).unquotedString
    case None => scan.relation.location.rootPaths.mkString(", ")
  }

  private def withoutLabel(name: String): String =
    if (name.contains(Label)) name.substring(0, name.indexOf(Label)) else name
}

/** The same rule for plans that adaptive execution does not touch. */
final class PhysicalScanColumnarRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new PhysicalScanRule(session)
}
