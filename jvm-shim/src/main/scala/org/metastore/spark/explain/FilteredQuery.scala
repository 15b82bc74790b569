package org.metastore.spark.explain

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{
  AliasHelper, And, AttributeReference, Expression, Literal, PythonUDF, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter, GlobalLimit, LeafNode, LocalLimit, LogicalPlan, Project, SubqueryAlias, View
}
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

  /** The paths of the data files without a matching row, and of those whose rows are all live and match. */
  def files: (Seq[String], Seq[String]) = {
    // A decision has the files in which every row matches only under a LIMIT.
    val limit = Literal(Int.MaxValue)
    val limited = GlobalLimit(limit, LocalLimit(limit, analyzed))
    ScanDecisions.fromPlan(PlannedQuery.fromPlan(session, limited).executedPlan) match {
      case Seq(scan) =>
        val paths = scan.files.paths
        (scan.pathsSkipped, paths.indices.filter(scan.full.get(_)).map(paths(_)))
      case _ => (Nil, Nil)
    }
  }
}

object FilteredQuery extends AliasHelper {
  private val Supported = " It has to be SELECT .. FROM one table, or a view of one, with WHERE or without."

  /**
   * Parses a query of one table.
   *
   * @throws org.apache.spark.sql.AnalysisException the query is wrong, has another form, or reads a table
   *   that a policy partly hides from this user
   */
  def parse(session: SparkSession, query: String): FilteredQuery = {
    val analyzed = PlannedQuery.fromText(session, query).analyzed
    QueryPermission.require(session, analyzed)
    val original = parts(analyzed)
    val table = tableOf(original)
    val name = TableLookup.sqlName(original.relation).getOrElse(SqlName(Seq(table.format, table.location)))
    val condition = conjunction(original.conditions.map(withoutQualifiers)).fold("true")(_.sql)
    // Rows are read by this text: it must mean the same as the query.
    val analyzedAgain =
      try PlannedQuery.fromText(session, s"SELECT * FROM $name WHERE $condition").analyzed
      catch { case _: AnalysisException => throw conditionRefused(name) }
    val rewritten = parts(analyzedAgain)
    if (!isSameTable(tableOf(rewritten), table) || source(rewritten) != source(original))
      throw refused(s"it does not read $name as the name now stands for it")
    if (normalized(rewritten) != normalized(original)) throw conditionRefused(name)
    new FilteredQuery(session, name, condition, analyzedAgain)
  }

  private def isSameTable(table: LakeTable, other: LakeTable): Boolean =
    table.uuid == other.uuid && table.current == other.current

  /** The relation that a query reads, and its conditions in the relation's columns. */
  private final case class Parts(relation: LogicalPlan, conditions: Seq[Expression])

  private def parts(plan: LogicalPlan, conditions: Seq[Expression] = Nil): Parts = plan match {
    case alias: SubqueryAlias => parts(alias.child, conditions)
    case view: View => parts(view.child, conditions)
    case Filter(condition, child) => parts(child, condition +: conditions)
    // Conditions above a projection are rewritten in the columns below it.
    case project: Project => parts(project.child, conditions.map(replaceAlias(_, getAliasMap(project))))
    case leaf: LeafNode =>
      conditions.foreach(requirePlain)
      Parts(leaf, conditions)
    case other => throw refused(s"it has ${other.nodeName}")
  }

  private def requirePlain(condition: Expression): Unit = {
    if (!condition.deterministic) throw refused("its WHERE is not deterministic")
    if (condition.exists(e => e.isInstanceOf[SubqueryExpression] || e.isInstanceOf[PythonUDF])) {
      throw refused("its WHERE has a sub-query or a Python function")
    }
  }

  private def tableOf(query: Parts): LakeTable =
    TableFormats.open(query.relation).getOrElse(throw refused(
      s"it reads ${TableFormats.describe(query.relation)}, not ${TableFormats.kinds}"))

  /** The name or files, the options and the columns of a relation. Equal values mean the same rows. */
  private def source(query: Parts): Any = query.relation match {
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

  private def normalized(query: Parts): Option[Expression] = {
    val condition = conjunction(query.conditions.filterNot(_ == Literal.TrueLiteral))
    condition.map(QueryPlan.normalizeExpressions(_, query.relation.output).canonicalized)
  }

  private def conjunction(conditions: Seq[Expression]): Option[Expression] =
    conditions.reduceOption(And(_, _))

  private def conditionRefused(name: String): MetastoreException =
    refused(s"its WHERE cannot be told in columns of $name")

  private def refused(detail: String): MetastoreException =
    MetastoreException.invalidArgument("query", detail, Supported)
}
