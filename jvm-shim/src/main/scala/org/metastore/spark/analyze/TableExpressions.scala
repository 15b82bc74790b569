package org.metastore.spark.analyze

import java.util.{Map => JavaMap}

import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.{Dataset, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{BaseEvalPython, LeafNode, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE

import org.metastore.spark.pruning.{ColumnLookup, ConjunctRefusal, ExpressionKeys}
import org.metastore.spark.reason.Reason
import org.metastore.spark.scan.FileScan
import org.metastore.spark.tables.{FileRelation, ReadPermission, TableFormats, TableLookup}

/** Describes the expressions for which ANALYZE computes statistics. Called over py4j. */
object TableExpressions extends AliasHelper {
  private val mapper = new ObjectMapper

  private val UserCode =
    "it calls a function whose code, with all that it calls, may become another one under the same name:" +
      " give it a version in spark.metastore.functions (%s:1), or write it in SQL (Spark 4: CREATE FUNCTION ... RETURN)"

  private val NotOfRows = "Spark does not compute it from the rows of the table alone"

  /**
   * The reason why a text is no single expression, or null. A single one cannot end early inside a statement.
   */
  def findSyntaxError(text: String): String =
    Try(CatalystSqlParser.parseExpression(text)).fold(_.getMessage, _ => null)

  /**
   * Describes the columns of a query over one table, in their order, as a JSON array. An entry has `key`, the
   * expression's key in statistics, and `columns`, the keys of the columns that it reads; or `refused`, the
   * reason why it can have no statistics. The array is empty if the query is more than expressions over the
   * table's rows.
   *
   * @param columns the keys of the table's columns, by the names from the root of the schema, joined by
   *                `\u0000`
   */
  def describe(rows: Dataset[Row], columns: JavaMap[String, String]): String =
    ReadPermission.asActive(rows.sparkSession) {
      val answer = mapper.createArrayNode
      val computed = evaluated(rows.queryExecution.optimizedPlan)
      for ((expression, i) <- written(rows.queryExecution.analyzed).zipWithIndex) {
        val node = answer.addObject
        val leaf = computed.lift(i).map(_.leaf)
        val keys = new ExpressionKeys(rows.sparkSession.sessionState.conf, keyOf(leaf, columns))
        refusal(expression, leaf, keys) match {
          case Some(reason) => node.put("refused", reason)
          case None => putKey(node, keys, computed(i), columns)
        }
      }
      mapper.writeValueAsString(answer)
    }

  private final case class Evaluated(expression: Expression, leaf: LeafNode)

  private def written(plan: LogicalPlan): Seq[Expression] = plan match {
    case Project(columns, child) if TableLookup.relation(child).isInstanceOf[LeafNode] =>
      columns.map(withoutName)
    // Functions that are written in SQL have their arguments below them.
    case Project(columns, below: Project) => written(replaceAliases(columns, getAliasMap(below), below.child))
    case _ => Nil
  }

  // The expressions of any other plan are unknown.
  private def evaluated(plan: LogicalPlan): Seq[Evaluated] = plan match {
    case Project(columns, leaf: LeafNode) => columns.map(column => Evaluated(withoutName(column), leaf))
    case Project(columns, below: Project) =>
      evaluated(replaceAliases(columns, getAliasMap(below), below.child))
    case Project(columns, python: BaseEvalPython) =>
      val results =
        for ((result, call) <- python.resultAttrs.zip(python.udfs)) yield result -> Alias(call, result.name)()
      evaluated(replaceAliases(columns, AttributeMap(results), python.child))
    case leaf: LeafNode => leaf.output.map(Evaluated(_, leaf))
    case _ => Nil
  }

  /** A projection above another one as a single projection. */
  private def replaceAliases(
      columns: Seq[NamedExpression],
      aliases: AttributeMap[Alias],
      child: LogicalPlan): Project =
    Project(columns.map(replaceAliasButKeepName(_, aliases)), child)

  private def withoutName(column: NamedExpression): Expression = column match {
    case Alias(expression, _) => expression
    case other => other
  }

  private def refusal(written: Expression, leaf: Option[LeafNode], keys: ExpressionKeys): Option[String] =
    written match {
      case ColumnLookup.ColumnPath(_, _) => Some("it is a column, which has statistics of its own")
      case _ if written.references.isEmpty => Some("it reads no column")
      case _ if written.containsPattern(CURRENT_LIKE) =>
        Some("its value is another one tomorrow, or for another user")
      case _ =>
        def uncertain = ConjunctRefusal.reason(written, keys.versionOf(_).isDefined).map(sentence)
        def notOfRows = leaf.fold(Option(NotOfRows))(conversion)
        codeOfUsers(written, keys).orElse(uncertain).orElse(notOfRows)
    }

  private def codeOfUsers(written: Expression, keys: ExpressionKeys): Option[String] = written.collectFirst {
    case call: UserDefinedExpression if keys.versionOf(call).isEmpty => UserCode.format(call.name)
  }

  private def sentence(reason: Reason): String = reason.sentence.stripSuffix(".")

  private def conversion(leaf: LeafNode): Option[String] =
    for {
      files <- FileRelation.unapply(leaf)
      refusal <- FileScan.conversionRefusal(files)
    } yield sentence(refusal)

  private def keyOf(leaf: Option[LeafNode], columns: JavaMap[String, String])(
      column: Expression): Option[String] =
    (leaf, column) match {
      case (Some(relation), ColumnLookup.ColumnPath(root, path)) =>
        for {
          attribute <- relation.output.find(_.exprId == root.exprId)
          names = attribute.name +: path
          key <- Option(columns.get(names.mkString("\u0000"))) if isRead(relation, names, key)
        } yield key
      case _ => None
    }

  /** Whether a relation reads by these names the column that has a key in statistics. */
  private def isRead(leaf: LeafNode, names: Seq[String], key: String): Boolean =
    FileRelation.unapply(leaf).forall(TableFormats.readByKey(_, names, key))

  private def putKey(
      node: ObjectNode,
      keys: ExpressionKeys,
      computed: Evaluated,
      columns: JavaMap[String, String]): Unit = {
    keys.toKey(computed.expression) match {
      case None =>
        node.put(
          "refused",
          "it is not made of columns and of Spark's own functions whose results are certain")
      case Some(key) =>
        node.put("key", key)
        val array = node.putArray("columns")
        val read = ColumnLookup.leavesOf(computed.expression).flatMap(keyOf(Some(computed.leaf), columns))
        read.distinct.foreach(array.add(_))
    }
    ()
  }
}
