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

/** What ANALYZE asks of the expressions that it computes statistics of, over py4j. */
object TableExpressions extends AliasHelper {
  private val mapper = new ObjectMapper

  private val OfUsersCode =
    "it calls a function whose code, with all that it calls, may become another one under the same name:" +
      " give it a version in spark.metastore.functions (%s:1), or write it in SQL (Spark 4: CREATE FUNCTION ... RETURN)"

  /** Why a text is no single expression; null where it is one: then nothing of it ends up elsewhere in a statement. */
  def findSyntaxError(text: String): String =
    Try(CatalystSqlParser.parseExpression(text)).fold(_.getMessage, _ => null)

  /**
   * What is known of the columns of a query over one table, in their order, as a JSON array: `key` by which statistics know the
   * expression, and `columns`, the keys of those that it reads; or `refused`, why there can be none. An empty array where the
   * query is more than expressions over the rows of the table.
   *
   * @param columns the keys of the table's columns, by the names from the root of the schema, joined by `\u0000`
   */
  def describe(rows: Dataset[Row], columns: JavaMap[String, String]): String =
    ReadPermission.asActive(rows.sparkSession) {
      val answer = mapper.createArrayNode
      val computed = evaluated(rows.queryExecution.optimizedPlan)
      for ((expression, i) <- written(rows.queryExecution.analyzed).zipWithIndex) {
        val one = answer.addObject
        val leaf = computed.lift(i).map(_.leaf)
        val keys =
          new ExpressionKeys(
            rows.sparkSession.sessionState.conf,
            leaf.fold((_: Expression) => Option.empty[String])(keyOf(_, columns)))
        refusal(expression, leaf, keys) match {
          case Some(why) => one.put("refused", why)
          case None => putKey(one, keys, computed(i), columns)
        }
      }
      mapper.writeValueAsString(answer)
    }

  private final case class Evaluated(expression: Expression, leaf: LeafNode)

  private def written(plan: LogicalPlan): Seq[Expression] = plan match {
    case Project(shown, child) if TableLookup.relation(child).isInstanceOf[LeafNode] => shown.map(withoutName)
    // Functions that are written in SQL have their arguments below them.
    case Project(shown, below: Project) =>
      written(Project(shown.map(replaceAliasButKeepName(_, getAliasMap(below))), below.child))
    case _ => Nil
  }

  // Where Spark makes something else of a projection, nothing is told of it.
  private def evaluated(plan: LogicalPlan): Seq[Evaluated] = plan match {
    case Project(shown, leaf: LeafNode) => shown.map(one => Evaluated(withoutName(one), leaf))
    case Project(shown, below: Project) =>
      evaluated(Project(shown.map(replaceAliasButKeepName(_, getAliasMap(below))), below.child))
    case Project(shown, python: BaseEvalPython) =>
      val results =
        for ((result, call) <- python.resultAttrs.zip(python.udfs)) yield result -> Alias(call, result.name)()
      val named = AttributeMap(results)
      evaluated(Project(shown.map(replaceAliasButKeepName(_, named)), python.child))
    case leaf: LeafNode => leaf.output.map(Evaluated(_, leaf))
    case _ => Nil
  }

  private def withoutName(shown: NamedExpression): Expression = shown match {
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
        codeOfUsers(written, keys)
          .orElse(ConjunctRefusal.reason(written, keys.versionOf(_).isDefined).map(sentence))
          .orElse(leaf.fold(Option("Spark does not compute it from the rows of the table alone"))(conversion))
    }

  private def codeOfUsers(written: Expression, keys: ExpressionKeys): Option[String] = written.collectFirst {
    case call: UserDefinedExpression if keys.versionOf(call).isEmpty => OfUsersCode.format(call.name)
  }

  private def sentence(reason: Reason): String = reason.sentence.stripSuffix(".")

  private def conversion(leaf: LeafNode): Option[String] =
    for {
      files <- FileRelation.unapply(leaf)
      refusal <- FileScan.conversionRefusal(files)
    } yield sentence(refusal)

  private def keyOf(leaf: LeafNode, columns: JavaMap[String, String])(column: Expression): Option[String] =
    column match {
      case ColumnLookup.ColumnPath(root, path) =>
        for {
          attribute <- leaf.output.find(_.exprId == root.exprId)
          names = attribute.name +: path
          key <- Option(columns.get(names.mkString("\u0000"))) if isRead(leaf, names, key)
        } yield key
      case _ => None
    }

  /** Whether a relation reads by those names what statistics have under a key. */
  private def isRead(leaf: LeafNode, names: Seq[String], key: String): Boolean =
    FileRelation.unapply(leaf).forall(TableFormats.readByKey(_, names, key))

  private def putKey(
      one: ObjectNode,
      keys: ExpressionKeys,
      computed: Evaluated,
      columns: JavaMap[String, String]): Unit = {
    keys.toKey(computed.expression) match {
      case None =>
        one.put("refused", "it is not made of columns and of Spark's own functions whose results are certain")
      case Some(key) =>
        one.put("key", key)
        val read = one.putArray("columns")
        val keysRead = ColumnLookup.leavesOf(computed.expression).flatMap(keyOf(computed.leaf, columns))
        keysRead.distinct.foreach(read.add(_))
    }
    ()
  }
}
