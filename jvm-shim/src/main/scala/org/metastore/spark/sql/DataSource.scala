package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.catalyst.expressions.{Attribute, EqualTo, Expression, Literal, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.LiteralList
import org.metastore.spark.reason.{Indexed, MetastoreException}
import org.metastore.spark.tables.{TableFormats, TableLookup}

/**
 * Answers `spark.read.format("metastore").option("table", "db.t")`. Python implements the data source, and
 * its worker has no session to resolve a name with. A location needs no session: Python reads it.
 */
final class DataSourceRule(session: SparkSession) extends Rule[LogicalPlan] {
  private val PythonTable = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case relation: DataSourceV2Relation
        if relation.table.getClass.getName == PythonTable && isOurs(relation) =>
      val read = withCatalogOptions(relation)
      answer(read).getOrElse(read)
  }

  private def isOurs(relation: DataSourceV2Relation): Boolean =
    relation.table.name.toLowerCase(Locale.ROOT) == "metastore"

  /**
   * A table of the session's catalog with the options of CREATE TABLE: Spark passes those of the query alone.
   */
  private def withCatalogOptions(relation: DataSourceV2Relation): DataSourceV2Relation =
    relation.identifier match {
      case Some(name) if !Seq("path", "table").exists(relation.options.containsKey(_)) =>
        val identifier = TableIdentifier(name.name, name.namespace.lastOption)
        val created = session.sessionState.catalog.getTableMetadata(identifier).storage
        // A table that names another one has a location, too: its own, where nothing is.
        val namesTable = CaseInsensitiveMap(created.properties).contains("table")
        val location = if (namesTable) None else created.locationUri
        val path = location.map(uri => "path" -> CatalogUtils.URIToString(uri))
        val options = path.toMap ++ created.properties ++ relation.options.asCaseSensitiveMap.asScala
        relation.copy(options = new CaseInsensitiveStringMap(options.asJava))
      case _ => relation
    }

  private def answer(relation: DataSourceV2Relation): Option[LogicalPlan] = {
    val options = SourceOptions.fromRelation(relation)
    for {
      name <- SourceOptions.subject(options) if !TableFormats.isLocation(name)
      view <- View.named(options.getOrElse("view", "summary").toLowerCase(Locale.ROOT))
    } yield {
      MetastoreConf.requireValid(session, Set("read"))
      val narrowing = View.narrowing.filter(options.contains)
      for (option <- narrowing if !view.narrowedBy.contains(option))
        throw MetastoreException.invalidArgument(option, s"the view ${view.name} cannot be narrowed by it")
      val arguments = Indexed.entries(narrowing)(option => option -> Literal(options(option)))
      def read(keeps: (String, String) => Boolean): LocalRelation =
        TableFunctions.readWithinLimit(session, name) {
          view.read(session, view.call(arguments + ("table" -> Literal(name)), keeps), relation.output)
        }
      if (view.name != ColumnsFunction.name) read((_, _) => true)
      else {
        TableFunctions.readWithinLimit(session, name)(TableLookup.resolve(session, name))
        FunctionCall(relation.output, view.name, (name, options), Answer.WithFilters(read))
      }
    }
  }
}

/** The options of `spark.read.format("metastore")`. */
private[sql] object SourceOptions {

  /** The options of a relation, their names in lower case. */
  def fromRelation(relation: DataSourceV2Relation): Map[String, String] =
    Indexed.entries(relation.options.asCaseSensitiveMap.asScala) { case (name, value) =>
      name.toLowerCase(Locale.ROOT) -> value
    }

  /** The table or location that they name. */
  def subject(options: Map[String, String]): Option[String] = options.get("path").orElse(options.get("table"))
}

/**
 * Reads the rows of the view `columns` that may pass the filters above it. Spark applies the filters once
 * more.
 */
object ColumnsViewRule extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case filter @ Filter(condition, view: FunctionCall) =>
      filter.copy(child = view.read(allowed(splitConjunctivePredicates(condition), view.output)))
    case call: FunctionCall => call.read((_, _) => true) // the analyzer may have run without our rules
  }

  /** Tests whether the conjuncts leave a value of a text column. */
  private def allowed(conjuncts: Seq[Expression], output: Seq[Attribute]): (String, String) => Boolean = {
    val columns = output.filter(_.dataType == StringType)
    val conditions = for {
      conjunct <- conjuncts
      (expression, values) <- valuesOf(conjunct)
      column <- columns.find(_.semanticEquals(expression))
    } yield AllowedTexts(column.name, Indexed.set(values.filter(_ != null))(_.toString))
    (column, text) => conditions.forall(allowed => allowed.column != column || allowed.texts(text))
  }

  /** The texts that a column may have. */
  private final case class AllowedTexts(column: String, texts: Set[String])

  private def valuesOf(conjunct: Expression): Option[(Expression, Seq[Any])] = conjunct match {
    case EqualTo(column, Literal(value, StringType)) => Some((column, Seq(value)))
    case EqualTo(Literal(value, StringType), column) => Some((column, Seq(value)))
    case LiteralList(column, values) => Some((column, values))
    case _ => None
  }
}
