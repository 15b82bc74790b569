package org.metastore.spark.explain

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{
  AliasHelper, And, AttributeReference, Expression, Literal, PythonUDF, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter, GlobalLimit, LeafNode, LocalLimit, LogicalPlan, Project, SubqueryAlias, View
}
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.reason.{MetastoreException, SqlName}
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.{LakeTable, QueryPermission, TableFormats, TableLookup}

/**
 * A query of one table with a WHERE.
 *
 * @param table     the table as SQL names it
 * @param condition the WHERE, in the table's own columns
 */
final class FilteredQuery private (
    session: SparkSession,
    val table: String,
    val condition: String,
    analyzed: LogicalPlan) {

  /** The data files of which no row matches, and those of which every row is live and does, by path. */
  def files: (Seq[String], Seq[String]) = {
    // Whoever asks for so many rows learns which files hold nothing else.
    val most = Literal(Int.MaxValue)
    val planned = session.sessionState.executePlan(
      GlobalLimit(most, LocalLimit(most, analyzed)),
      CommandExecutionMode.SKIP)
    ScanDecisions.fromPlan(planned.executedPlan) match {
      case Seq(one) =>
        (one.pathsSkipped, one.files.paths.indices.filter(one.full.get(_)).map(one.files.paths(_)))
      case _ => (Nil, Nil)
    }
  }
}

object FilteredQuery extends AliasHelper {
  private val Supported = " It has to be SELECT .. FROM one table, or a view of one, with WHERE or without."

  /**
   * What a query reads of its one table.
   *
   * @throws org.apache.spark.sql.AnalysisException the query is wrong, or another one, or reads what is not shown to this user
   */
  def parse(session: SparkSession, query: String): FilteredQuery = {
    val asked = analyze(session, query)
    QueryPermission.require(session, asked)
    val found = parts(asked)
    val known = tableOf(found)
    val name = TableLookup.sqlName(found.relation).getOrElse(SqlName(Seq(known.format, known.location)))
    val condition = found.conditions.map(withoutQualifiers).reduceOption(And(_, _)).fold("true")(_.sql)
    // What is read is this text: it has to mean the same.
    val told =
      try analyze(session, s"SELECT * FROM $name WHERE $condition")
      catch { case _: AnalysisException => throw refused(s"its WHERE cannot be told in columns of $name") }
    val again = parts(told)
    if (tableOf(again).uuid != known.uuid || tableOf(again).current != known.current || source(
        again) != source(found)) {
      throw refused(s"it does not read $name as the name now stands for it")
    }
    if (normalized(again) != normalized(found)) throw refused(s"its WHERE cannot be told in columns of $name")
    new FilteredQuery(session, name, condition, told)
  }

  private final case class Parts(relation: LogicalPlan, conditions: Seq[Expression])

  private def analyze(session: SparkSession, query: String): LogicalPlan =
    session.sessionState.executePlan(
      session.sessionState.sqlParser.parsePlan(query),
      CommandExecutionMode.SKIP).analyzed

  private def parts(plan: LogicalPlan, above: Seq[Expression] = Nil): Parts = plan match {
    case alias: SubqueryAlias => parts(alias.child, above)
    case view: View => parts(view.child, above)
    case Filter(condition, child) => parts(child, condition +: above)
    // Conditions are told in what is below.
    case project: Project => parts(project.child, above.map(replaceAlias(_, getAliasMap(project))))
    case leaf: LeafNode =>
      above.foreach(requirePlain)
      Parts(leaf, above)
    case other => throw refused(s"it has ${other.nodeName}")
  }

  private def requirePlain(condition: Expression): Unit = {
    if (!condition.deterministic) throw refused("its WHERE is not deterministic")
    if (condition.exists(e => e.isInstanceOf[SubqueryExpression] || e.isInstanceOf[PythonUDF])) {
      throw refused("its WHERE has a sub-query or a Python function")
    }
  }

  private def tableOf(found: Parts): LakeTable =
    TableFormats.open(found.relation).getOrElse(throw refused(
      s"it reads ${TableFormats.describe(found.relation)}, not ${TableFormats.kinds}"))

  /** What the same table may be read by in different ways. */
  private def source(found: Parts): Any = found.relation match {
    case v2: DataSourceV2Relation =>
      (v2.table.name, v2.options.asCaseSensitiveMap, v2.output.map(column => (column.name, column.dataType)))
    case v1: LogicalRelation => v1.relation match {
        case files: HadoopFsRelation =>
          (files.location.rootPaths, files.options.filterNot(_._1.equalsIgnoreCase("path")), files.schema)
        case other => other
      }
    case other => other.canonicalized
  }

  private def withoutQualifiers(condition: Expression): Expression = condition.transform {
    case column: AttributeReference => column.withQualifier(Nil)
  }

  private def normalized(found: Parts): Option[Expression] =
    found.conditions.filterNot(_ == Literal.TrueLiteral).reduceOption(And(_, _))
      .map(QueryPlan.normalizeExpressions(_, found.relation.output).canonicalized)

  private def refused(why: String): MetastoreException =
    MetastoreException.invalidArgument("query", s"$why", Supported)
}
