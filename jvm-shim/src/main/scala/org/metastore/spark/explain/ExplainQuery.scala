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

/** What would be read for a query, without running it. */
object ExplainQuery {

  /**
   * Plans a query and tells, for each of its scans and data files, whether it would be read and why.
   *
   * A scan that is left alone before its files are known has one row without a path, and so has a plan without scans. Commands are
   * planned, never run. The
   * query of a write that Spark plans when the command runs (CREATE TABLE .. AS SELECT) is planned by itself.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that is not shown to this
   *                                               user as it is: reasons quote values
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

  /** The decisions on the scans of a query, with the tables that they read. */
  def scans(session: SparkSession, query: String): QueryScans = scans(session, query, ScanDecisions.fromPlan)

  private def scans(
      session: SparkSession,
      query: String,
      find: SparkPlan => Seq[ScanDecision]): QueryScans = {
    val planned = PlannedQuery.fromText(session, query)
    QueryPermission.require(session, planned.analyzed)
    val ofPlan = find(planned.executedPlan)
    val ofCommand = if (ofPlan.isEmpty) scansOfCommand(session, planned, find) else Nil
    val answered = MetadataAnswers.decisions(session, planned, ofPlan)
    new QueryScans(ofPlan ++ ofCommand ++ answered, planned)
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

  /** The query whose rows a table gets. */
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

  /** The decision of a plan without scans: it has a reason alone, and the table that a command changes. */
  private[explain] def withoutScans(query: String): ScanDecision =
    ScanDecision.withoutPruning(target.flatMap(TableLookup.sqlName).getOrElse(""), whyNoScan(query))

  private def target: Option[LogicalPlan] = {
    // A format's own command may have its target for an argument.
    val arguments = analyzed.productIterator.collect { case plan: LogicalPlan => plan }
    val leaves = (Iterator(analyzed) ++ arguments).flatMap(_.collectLeaves())
    leaves.find(TableFormats.open(_).isDefined)
  }

  private def whyNoScan(query: String): Reason = {
    val firstWord = query.trim.takeWhile(_.isLetter).toUpperCase(Locale.ROOT)
    val statement = if (firstWord.isEmpty) analyzed.nodeName else firstWord
    if (!MetastoreConf.fromSession(planned.sparkSession).enabled)
      Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.Enabled.key)
    else if (planned.executedPlan.nodeName == "DeleteFromTable") Reason(ReasonCode.AnsweredByFormat)
    else if (QueryScans.RowLevel(statement)) Reason(ReasonCode.RowLevelCommand, "command" -> statement)
    else Reason(ReasonCode.NoScan, "statement" -> statement, "kinds" -> TableFormats.kinds)
  }

  /** The table that a scan reads: by its id, or by its name where no statistics were looked up. */
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
