package org.metastore.spark.explain

import java.util.Locale

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{
  AppendData, LeafNode, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic,
  V2CreateTableAsSelectPlan
}
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{FileDecision, ScanDecision}
import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.{LakeTable, QueryPermission, TableFormats, TableLookup}

/** Finds the files that a query would read, without running it. */
object ExplainQuery {

  /**
   * Plans a query and returns, for each scan and data file, whether the query would read it and why.
   *
   * A plan without scans has one row without a path. So has a scan that is not pruned and whose files are not
   * listed. Commands are planned, never run. If Spark plans a write's query when the command runs (CREATE
   * TABLE .. AS SELECT), that query is planned separately.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that a policy
   *   partly hides from this user: reasons quote values
   */
  def decisions(session: SparkSession, query: String): Seq[FileDecision] = {
    val planned = scans(session, query, ScanDecisions.fromQuery)
    val decisions =
      if (planned.decisions.nonEmpty) planned.decisions
      else Seq(planned.withoutScans(query))
    for {
      (decision, scan) <- decisions.zipWithIndex
      file <- decision.perFile(scan)
    } yield file
  }

  /** Plans a query; returns the decisions on its scans, with their tables. */
  def scans(session: SparkSession, query: String): QueryScans = scans(session, query, ScanDecisions.fromPlan)

  private def scans(
      session: SparkSession,
      query: String,
      find: SparkPlan => Seq[ScanDecision]): QueryScans = {
    val planned = PlannedQuery.fromText(session, query)
    QueryPermission.require(session, planned.analyzed)
    val planScans = find(planned.executedPlan)
    val commandScans = if (planScans.isEmpty) scansOfCommand(session, planned, find) else Nil
    val answeredScans = MetadataAnswers.decisions(session, planned, planScans)
    new QueryScans(planScans ++ commandScans ++ answeredScans, planned)
  }

  /** The scans of the query that a command plans when it runs. */
  private def scansOfCommand(
      session: SparkSession,
      planned: QueryExecution,
      find: SparkPlan => Seq[ScanDecision]): Seq[ScanDecision] =
    FindingQuery.fromStatement(session, planned.logical) match {
      case Some(query) => query.decisions(session, find)
      case None => queryOfWrite(planned.analyzed).toSeq.flatMap(scansInsideWrite(session, _, find))
    }

  private def scansInsideWrite(
      session: SparkSession,
      query: LogicalPlan,
      find: SparkPlan => Seq[ScanDecision]): Seq[ScanDecision] = {
    val scans = find(PlannedQuery.fromPlan(session, query).executedPlan)
    if (MetastoreConf.fromSession(session).pruneInsideWrites) scans
    else scans.map(_.withoutPruning(Reason(ReasonCode.InsideWrite)))
  }

  /** The query whose rows are written to a table. */
  private def queryOfWrite(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case create: V2CreateTableAsSelectPlan => Some(create.query)
    case insert @ (_: AppendData | _: OverwriteByExpression | _: OverwritePartitionsDynamic) =>
      insert.children.headOption
    case CreateDataSourceTableAsSelectCommand(_, _, query, _) => Some(query)
    case _ => None
  }
}

/** The decisions on the scans of a query, in the order of its plan. */
final class QueryScans private[explain] (val decisions: Seq[ScanDecision], planned: QueryExecution) {
  private def analyzed = planned.analyzed

  /** The decision for a plan without scans: its reason, and the table that a command changes. */
  private[explain] def withoutScans(query: String): ScanDecision =
    ScanDecision.withoutPruning(target.flatMap(TableLookup.sqlName).getOrElse(""), noScanReason(query))

  private def target: Option[LogicalPlan] = {
    // A format's own command may have its target as an argument.
    val arguments = analyzed.productIterator.collect { case plan: LogicalPlan => plan }
    val leaves = (Iterator(analyzed) ++ arguments).flatMap(_.collectLeaves())
    leaves.find(TableFormats.open(_).isDefined)
  }

  private def noScanReason(query: String): Reason = {
    val firstWord = query.trim.takeWhile(_.isLetter).toUpperCase(Locale.ROOT)
    val statement = if (firstWord.isEmpty) analyzed.nodeName else firstWord
    if (!MetastoreConf.fromSession(planned.sparkSession).enabled)
      Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.Enabled.key)
    else if (planned.executedPlan.nodeName == "DeleteFromTable") Reason(ReasonCode.AnsweredByFormat)
    else if (QueryScans.RowLevel(statement)) Reason(ReasonCode.RowLevelCommand, "command" -> statement)
    else Reason(ReasonCode.NoScan, "statement" -> statement, "kinds" -> TableFormats.kinds)
  }

  /** The table that a scan reads, found by its id, or by its name if no statistics were looked up. */
  def tableOf(decision: ScanDecision): Option[LakeTable] = {
    val relations = analyzed.collectWithSubqueries { case leaf: LeafNode => leaf }
    Indexed.firstAnswer(relations) { relation =>
      TableFormats.open(relation).filter(isOf(relation, _, decision))
    }
  }

  private def isOf(relation: LogicalPlan, table: LakeTable, decision: ScanDecision): Boolean =
    decision.question match {
      case Some(question) => question.table.uuid == table.uuid
      case None => namesOf(relation, table).contains(decision.table)
    }

  private def namesOf(relation: LogicalPlan, table: LakeTable): Seq[String] = {
    val name = TableLookup.sqlName(relation)
    val locations = Seq(table.location, table.qualifiedLocation)
    if (name.isDefined) name.toSeq
    else locations.map(location => s"${table.format}.`$location`")
  }
}

private object QueryScans {
  private val RowLevel = Set("DELETE", "UPDATE", "MERGE")
}
