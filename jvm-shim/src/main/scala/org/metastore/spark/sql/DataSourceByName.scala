package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, NamedArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.metastore.spark.sql.functions.{ColumnsFunction, FilesFunction, SnapshotsFunction, SummaryFunction}
import org.metastore.spark.MetastoreConf
import org.metastore.spark.store.SummaryRow
import org.metastore.spark.tables.TableFormats

/**
 * Answers `spark.read.format("metastore").option("table", "db.t")`.
 *
 * The data source is Python's, and the worker that reads it has no session to resolve a name with; here there is one. A
 * location needs no session and is left to Python.
 */
final class DataSourceRule(session: SparkSession) extends Rule[LogicalPlan] {
  private val PythonTable = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"
  private val views: Map[String, TableFunction] =
    Seq(SummaryFunction, FilesFunction, ColumnsFunction, SnapshotsFunction).map(view => view.name -> view).toMap

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case relation: DataSourceV2Relation if relation.table.getClass.getName == PythonTable && isOurs(relation) =>
      val read = withCatalogOptions(relation)
      answer(read).getOrElse(read)
  }

  private def isOurs(relation: DataSourceV2Relation): Boolean = relation.table.name.toLowerCase(Locale.ROOT) == "metastore"

  /** A table of the session's catalog with the options that it was created with: Spark gives those of the query alone. */
  private def withCatalogOptions(relation: DataSourceV2Relation): DataSourceV2Relation = relation.identifier match {
    case Some(name) if !Seq("path", "table").exists(relation.options.containsKey(_)) =>
      val made = session.sessionState.catalog.getTableMetadata(TableIdentifier(name.name, name.namespace.lastOption)).storage
      // A table that names another one has a location, too: its own, where nothing is.
      val location = made.locationUri.filterNot(_ => made.properties.keys.exists(_.equalsIgnoreCase("table")))
      val options = location.map(uri => "path" -> CatalogUtils.URIToString(uri)).toMap ++ made.properties ++
        relation.options.asCaseSensitiveMap.asScala
      relation.copy(options = new CaseInsensitiveStringMap(options.asJava))
    case _ => relation
  }

  private def answer(relation: DataSourceV2Relation): Option[LogicalPlan] = {
    val options = relation.options.asCaseSensitiveMap.asScala.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }
    val asked = options.getOrElse("view", SummaryFunction.name).toLowerCase(Locale.ROOT)
    options.get("path").orElse(options.get("table")).filterNot(TableFormats.isLocation).flatMap { name =>
      val narrowed = DataSourceRule.narrowing.filter(options.contains)
      if (views.contains(asked) || DistributionViews.names(asked)) {
        MetastoreConf.requireValid(session)
        narrowed.filterNot(DataSourceRule.narrowedBy.getOrElse(asked, Set.empty)).foreach { option =>
          throw MetastoreException.invalidArgument(option, s"the view $asked cannot be narrowed by it")
        }
      }
      if (DistributionViews.names(asked))
        Some(TableFunctions.readWithinLimit(session, name)(
          DistributionViews.relation(session, asked, name, options.get("column"), options.get("file"), relation.output)))
      else views.get(asked).map {
        case ColumnsFunction => columnsView(name, options.toMap, relation.output)
        case SummaryFunction =>
          rows(SummaryFunction, name, relation.output, options.get("file").map("file" -> _)) { (_, call) =>
            SummaryFunction.known(session, call, options.get("column"))
          }
        case other => rows(other, name, relation.output) {
          case (typed: StatisticsFunction, call) => typed.rowsWithStatistics(session, call)
          case (plain, call) => plain.rows(session, call).map(_ -> None)
        }
      }
    }
  }

  private def columnsView(name: String, options: Map[String, String], output: Seq[Attribute]): ColumnsView = {
    TableFunctions.readWithinLimit(session, name)(TableLookup.resolve(session, name))
    ColumnsView(output, name, options) { (columns, files) =>
      rows(ColumnsFunction, name, output, options.get("column").map("column" -> _)) { (_, call) =>
        ColumnsFunction.known(session, call, options.get("file"), columns, files)
      }
    }
  }

  private def rows(view: TableFunction, name: String, output: Seq[Attribute], more: Option[(String, String)] = None)(
      read: (TableFunction, Arguments) => Seq[(InternalRow, Option[SummaryRow])]): LocalRelation = {
    val arguments = (Seq("table" -> name) ++ more).map { case (key, text) => NamedArgumentExpression(key, Literal(text)) }
    val known = TableFunctions.readWithinLimit(session, name)(read(view, Arguments.bind(view, arguments)))
    LocalRelation(output, known.map { case (row, statistics) =>
      ResultRow.row(output.map(attribute => value(view, row, statistics, attribute)): _*)
    })
  }

  private def value(view: TableFunction, row: InternalRow, statistics: Option[SummaryRow], attribute: Attribute): Any =
    view.schema.fieldNames.indexOf(attribute.name) match {
      case -1 => statistics.map(SummaryColumns.value(_, attribute.name))
      case i => row.get(i, view.schema(i).dataType)
    }
}

private[sql] object DataSourceRule {

  /** The options that narrow what is read. */
  val narrowing: Seq[String] = Seq("column", "file")

  /** Which views they narrow, as the Python side knows too. */
  val narrowedBy: Map[String, Set[String]] =
    Seq("summary", "columns", "frequencies", "histograms", "histograms_wide").map(_ -> narrowing.toSet).toMap + ("ranks" -> Set("column"))
}
