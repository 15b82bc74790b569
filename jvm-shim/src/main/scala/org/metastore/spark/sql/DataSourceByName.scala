package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, NamedArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.sql.functions.{ColumnsFunction, FilesFunction, SnapshotsFunction, SummaryFunction}
import org.metastore.spark.store.SummaryRow

/**
 * Answers `spark.read.format("metastore").option("table", "db.t")`.
 *
 * The data source is Python's, and the worker that reads it has no session to resolve a name with; here there is one. A
 * location needs no session and is left to Python.
 */
final class DataSourceByName(session: SparkSession) extends Rule[LogicalPlan] {
  private val PythonTable = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"
  private val views: Map[String, TableFunction] =
    Seq(SummaryFunction, FilesFunction, ColumnsFunction, SnapshotsFunction).map(view => view.name -> view).toMap

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case relation: DataSourceV2Relation if relation.table.getClass.getName == PythonTable && isOurs(relation) =>
      answer(relation).getOrElse(relation)
  }

  private def isOurs(relation: DataSourceV2Relation): Boolean = relation.table.name.toLowerCase(Locale.ROOT) == "metastore"

  private def answer(relation: DataSourceV2Relation): Option[LogicalPlan] = {
    val options = relation.options.asCaseSensitiveMap.asScala.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }
    val view = options.getOrElse("view", SummaryFunction.name).toLowerCase(Locale.ROOT)
    options.get("path").orElse(options.get("table")).filterNot(isLocation).flatMap { name =>
      if (DistributionViews.names(view))
        Some(TableFunctions.readable(name)(DistributionViews.relation(session, view, name, relation.output)))
      else views.get(view).map(function => LocalRelation(relation.output, rows(function, name, relation.output)))
    }
  }

  private def rows(view: TableFunction, name: String, output: Seq[Attribute]): Seq[InternalRow] = {
    val call = Arguments.bind(view, Seq(NamedArgumentExpression("table", Literal(name))))
    val known = TableFunctions.readable(name)(view match {
      case typed: TypedFunction => typed.known(session, call)
      case other => other.rows(session, call).map(_ -> None)
    })
    known.map { case (row, statistics) => Answer.row(output.map(attribute => value(view, row, statistics, attribute)): _*) }
  }

  private def value(view: TableFunction, row: InternalRow, statistics: Option[SummaryRow], attribute: Attribute): Any =
    view.schema.fieldNames.indexOf(attribute.name) match {
      case -1 => statistics.map(TypedColumns.value(_, attribute.name))
      case i => row.get(i, view.schema(i).dataType)
    }

  /** As the Python side tells locations from names. */
  private def isLocation(text: String): Boolean = !text.contains('`') && (text.contains('/') || text.startsWith("."))
}
