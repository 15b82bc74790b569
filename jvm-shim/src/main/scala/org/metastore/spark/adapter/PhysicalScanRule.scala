package org.metastore.spark.adapter

import scala.util.control.NonFatal

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.MetastoreConf
import org.metastore.spark.explain.Reason

/**
 * Drops files from the physical scans of marked file relations, and writes the decision on them. It runs where adaptive
 * execution prepares its first plan, so that EXPLAIN shows it, and for all other plans as a columnar rule; twice is harmless.
 */
final class PhysicalScanRule(session: SparkSession) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    lazy val planner = ScanPlanner.physical(session, new MetastoreConf(conf))
    plan.transformUp { case scan: FileSourceScanExec => marked(scan, planner).getOrElse(scan) }
  }

  private def marked(scan: FileSourceScanExec, planner: => ScanPlanner): Option[SparkPlan] =
    try ScanMark.of(scan.relation).filterNot(_ => isDone(scan)).flatMap {
      case ScanMark.Refusal(_, why) => Some(withLabel(scan, scan.relation, s"[Metastore: $why]"))
      case allowed: ScanMark.Permit => pruned(scan, allowed, planner)
    } catch {
      case NonFatal(e) =>
        ScanPlanner.warn(scan.nodeName, Reason.failure(e), e)
        None
    }

  private def pruned(scan: FileSourceScanExec, allowed: ScanMark.Permit, planner: ScanPlanner): Option[SparkPlan] = {
    val relation = scan.relation
    FileScan.at(relation, allowed.root, scan.tableIdentifier.map(_.unquotedString)).map { table =>
      planner.statistics(table.id, Some(allowed.fingerprint)) match {
        case Right(known) if known.fingerprint == allowed.fingerprint =>
          val index = new PruningFileIndex(relation.location, table, known.manifest, planner)
          val decision = index.decision(scan.partitionFilters, scan.dataFilters)
          withLabel(scan, relation.copy(location = index)(relation.sparkSession), decision.label)
        case Right(_) => withLabel(scan, relation, "[Metastore: the statistics changed while the query was planned]")
        case Left(why) => withLabel(scan, relation, s"[Metastore: ${why.sentence}]")
      }
    }
  }

  private def withLabel(scan: FileSourceScanExec, relation: HadoopFsRelation, label: String): SparkPlan = {
    val named = scan.tableIdentifier.getOrElse(TableIdentifier(relation.location.rootPaths.head.toString, Some(formatOf(scan.relation))))
    val copy = scan.copy(relation = relation, tableIdentifier = Some(named.copy(table = s"${named.table} $label")))
    copy.copyTagsFrom(scan)
    copy
  }

  private def formatOf(relation: HadoopFsRelation): String =
    DeltaScan.of(relation, None).orElse(HudiScan.of(relation, None)).fold("parquet")(_.id.format)

  private def isDone(scan: FileSourceScanExec): Boolean =
    scan.relation.location.isInstanceOf[PruningFileIndex] || scan.tableIdentifier.exists(_.table.contains(PhysicalScanRule.Label))
}

private[adapter] object PhysicalScanRule {
  private val Label = " [Metastore: "

  /** The name of a scan's table, without what was written behind it. */
  def tableOf(scan: FileSourceScanExec): String = scan.tableIdentifier match {
    case Some(TableIdentifier(name, format, _)) if name.contains('/') => s"${format.fold("")(_ + ".")}`${withoutLabel(name)}`"
    case Some(named) => named.copy(table = withoutLabel(named.table)).unquotedString
    case None => scan.relation.location.rootPaths.mkString(", ")
  }

  private def withoutLabel(name: String): String = if (name.contains(Label)) name.substring(0, name.indexOf(Label)) else name
}

/** The same rule for plans that adaptive execution does not touch. */
final class PhysicalScanColumnarRule(session: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new PhysicalScanRule(session)
}
