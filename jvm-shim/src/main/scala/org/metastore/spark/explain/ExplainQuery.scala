package org.metastore.spark.explain

import java.util.Locale

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{
  AppendData, LeafNode, LocalRelation, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic,
  V2CreateTableAsSelectPlan
}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.metastore.SessionCopy

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{FileDecision, ScanDecision}
import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.{LakeTable, QueryPermission, ReadPermission, TableFormats, TableLookup}

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
    val found = scans(session, query, ScanDecisions.fromQuery)
    val all = if (found.decisions.isEmpty) Seq(found.withoutScans(query)) else found.decisions
    for {
      (decision, scan) <- all.zipWithIndex
      file <- decision.perFile(scan)
    } yield file
  }

  /** As `decisions`, by scan that is read, with the tables. */
  def scans(session: SparkSession, query: String): QueryScans = scans(session, query, ScanDecisions.fromPlan)

  private def scans(
      session: SparkSession,
      query: String,
      find: SparkPlan => Seq[ScanDecision]): QueryScans = {
    val plan = session.sessionState.sqlParser.parsePlan(query)
    val planned = session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
    QueryPermission.require(session, planned.analyzed)
    val shown = find(planned.executedPlan)
    val ofCommand =
      if (shown.isEmpty) FindingQuery.fromStatement(session, plan).toSeq.flatMap(_.decisions(session, find))
      else Nil
    val answered = MetadataAnswers.decisions(session, plan, planned, shown)
    val ofWrite = queryOfWrite(planned.analyzed) match {
      case Some(written) if shown.isEmpty =>
        val read = find(session.sessionState.executePlan(written).executedPlan)
        if (MetastoreConf.fromSession(session).pruneInsideWrites) read
        else read.map(_.withoutPruning(Reason(ReasonCode.InsideWrite)))
      case _ => Nil
    }
    new QueryScans(shown ++ ofCommand ++ ofWrite ++ answered, planned)
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

/** What was decided of the scans of a query, in the order of its plan. */
final class QueryScans private[explain] (val decisions: Seq[ScanDecision], planned: QueryExecution) {
  private def analyzed = planned.analyzed

  /** Why a plan has no scan. */
  private[explain] def withoutScans(query: String): ScanDecision = {
    val firstWord = query.trim.takeWhile(_.isLetter).toUpperCase(Locale.ROOT)
    val statement = if (firstWord.isEmpty) analyzed.nodeName else firstWord
    // A format's own command may have its target for an argument.
    val plans = analyzed +: analyzed.productIterator.collect { case part: LogicalPlan => part }.toSeq
    val leaves = plans.flatMap(_.collectLeaves())
    val target = leaves.find(TableFormats.open(_).isDefined).flatMap(TableLookup.sqlName)
    val why =
      if (!MetastoreConf.fromSession(planned.sparkSession).enabled)
        Reason(ReasonCode.Disabled, "setting" -> MetastoreConf.Enabled.key)
      else if (planned.executedPlan.nodeName == "DeleteFromTable") Reason(ReasonCode.AnsweredByFormat)
      else if (QueryScans.RowLevel(statement)) Reason(ReasonCode.RowLevelCommand, "command" -> statement)
      else Reason(ReasonCode.NoScan, "statement" -> statement, "kinds" -> TableFormats.kinds)
    ScanDecision.withoutPruning(target.getOrElse(""), why)
  }

  /** The table that a scan reads, by its name where nothing was asked of its statistics. */
  def tableOf(decision: ScanDecision): Option[LakeTable] = {
    val relations = analyzed.collectWithSubqueries { case leaf: LeafNode => leaf }
    val tables =
      for {
        relation <- relations.iterator
        table <- TableFormats.open(relation)
        if isOf(relation, table, decision)
      } yield table
    Indexed.first(tables)
  }

  private def isOf(relation: LogicalPlan, table: LakeTable, decision: ScanDecision): Boolean =
    decision.question.fold(namesOf(relation, table).contains(decision.table))(_.table.uuid == table.uuid)

  private def namesOf(relation: LogicalPlan, table: LakeTable): Seq[String] =
    TableLookup.sqlName(relation).fold {
      Seq(table.location, table.qualifiedLocation).map(location => s"${table.format}.`$location`")
    }(Seq(_))
}

private object QueryScans {
  private val RowLevel = Set("DELETE", "UPDATE", "MERGE")
}

/** Counts and bounds that a table format answers from its metadata: no scan is left in the plan. */
object MetadataAnswers {

  /** One decision for each scan that a query would have if the formats did not answer it. */
  def decisions(
      session: SparkSession,
      plan: LogicalPlan,
      planned: QueryExecution,
      shown: Seq[ScanDecision]): Seq[ScanDecision] =
    if (!holds(planned.analyzed)(settingOf(_).isDefined) || !holds(planned.optimizedPlan)(
        _.isInstanceOf[LocalRelation])) Nil
    else {
      val reading = SessionCopy(session)
      TableFormats.all.flatMap(_.metadataAnswers).foreach(reading.conf.set(_, "false"))
      val all = ReadPermission.asActive(reading) {
        val read = reading.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
        ScanDecisions.fromPlan(read.executedPlan)
      }
      val tables = all.map(_.table).diff(shown.map(_.table))
      tables.map(ScanDecision.withoutPruning(_, Reason(ReasonCode.AnsweredByFormat)))
    }

  private def holds(plan: LogicalPlan)(test: LogicalPlan => Boolean): Boolean =
    plan.collectWithSubqueries { case node if test(node) => node }.nonEmpty

  private def settingOf(node: LogicalPlan): Option[String] = node match {
    case relation: LogicalRelation => TableFormats.all.find(_.reads(relation)).flatMap(_.metadataAnswers)
    case _ => None
  }
}
