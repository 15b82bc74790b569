package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, EqualTo, Expression, In, InSet, Literal, PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.connector.catalog.SupportsRead
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.{MetastoreConf, PythonInterpreter}
import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.statistics.objects.SummaryRow
import org.metastore.spark.tables.{Reflection, TableFormats, TableLookup}

/**
 * Answers `spark.read.format("metastore").option("table", "db.t")`. The data source is Python's, and the worker that reads it has
 * no session to resolve a name with; here there is one. A location needs no session and is left to Python.
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

  /** A table of the session's catalog with the options that it was created with: Spark gives those of the query alone. */
  private def withCatalogOptions(relation: DataSourceV2Relation): DataSourceV2Relation =
    relation.identifier match {
      case Some(name) if !Seq("path", "table").exists(relation.options.containsKey(_)) =>
        val made = session.sessionState.catalog.getTableMetadata(TableIdentifier(
          name.name,
          name.namespace.lastOption)).storage
        // A table that names another one has a location, too: its own, where nothing is.
        val location =
          made.locationUri.filterNot(_ => made.properties.keys.exists(_.equalsIgnoreCase("table")))
        val options = location.map(uri => "path" -> CatalogUtils.URIToString(uri)).toMap ++ made.properties ++
          relation.options.asCaseSensitiveMap.asScala
        relation.copy(options = new CaseInsensitiveStringMap(options.asJava))
      case _ => relation
    }

  private def answer(relation: DataSourceV2Relation): Option[LogicalPlan] = {
    val options = relation.options.asCaseSensitiveMap.asScala.map { case (k, v) =>
      k.toLowerCase(Locale.ROOT) -> v
    }.toMap
    for {
      name <- options.get("path").orElse(options.get("table")).filterNot(TableFormats.isLocation)
      view <- View.named(options.getOrElse("view", "summary").toLowerCase(Locale.ROOT))
    } yield {
      MetastoreConf.requireValid(session, Set("read"))
      val narrowing = View.narrowing.flatMap(option => options.get(option).map(option -> Literal(_)))
      narrowing.map(_._1).filterNot(view.narrowedBy.contains).foreach { option =>
        throw MetastoreException.invalidArgument(option, s"the view ${view.name} cannot be narrowed by it")
      }
      def read(keeps: (String, String) => Boolean): LocalRelation =
        TableFunctions.readWithinLimit(session, name) {
          view.read(session, view.call(Map("table" -> Literal(name)) ++ narrowing, keeps), relation.output)
        }
      if (view.name != ColumnsFunction.name) read((_, _) => true)
      else {
        TableFunctions.readWithinLimit(session, name)(TableLookup.resolve(session, name))
        FunctionCall(relation.output, view.name, (name, options), Answer.WithFilters(read))
      }
    }
  }
}

/** Finds `spark.read.format("metastore")` as Spark does, and says in one line what is wrong with it. */
final class DataSourceErrorRule(session: SparkSession) extends Rule[LogicalPlan] {
  private val Unresolved = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource"
  private lazy val finding =
    Reflection.load("org.apache.spark.sql.catalyst.analysis.ResolveDataSource", getClass.getClassLoader)
      .getConstructors.head.newInstance(session).asInstanceOf[Rule[LogicalPlan]]

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case source if isOurs(source) =>
      withClearErrors {
        val found = finding(source)
        found.foreach {
          case relation: DataSourceV2Relation if isReadInPython(relation) => read(relation)
          case _ =>
        }
        found
      }
  }

  private def isOurs(node: LogicalPlan): Boolean =
    node.getClass.getName == Unresolved && (node.productElement(0) match {
      case source: String => source.toLowerCase(Locale.ROOT) == "metastore"
      case _ => false
    })

  private def isReadInPython(relation: DataSourceV2Relation): Boolean = {
    val named = relation.options.asCaseSensitiveMap.asScala.map { case (key, value) =>
      key.toLowerCase(Locale.ROOT) -> value
    }
    named.get("path").orElse(named.get("table")).forall(TableFormats.isLocation)
  }

  /** Has Spark make the source's reader, which it keeps: what is wrong with a location is found when a task would begin. */
  private def read(relation: DataSourceV2Relation): Unit = relation.table match {
    case readable: SupportsRead =>
      readable.newScanBuilder(relation.options).build().toBatch.planInputPartitions()
    case _ =>
  }

  private def withClearErrors(find: => LogicalPlan): LogicalPlan =
    try find
    catch {
      case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
        throw MetastoreException.sourceNotFound(PythonInterpreter.of(session.sparkContext).command, e)
      case e: Exception => throw MetastoreException.fromPython(e).getOrElse(e)
    }
}

/** Rules that run before Spark resolves names. */
object EarlyRules {

  /** Injects a rule, and returns whether Spark has a place for it: Spark 3.5 and 4.0 have none. */
  def inject(extensions: SparkSessionExtensions, rule: SparkSession => Rule[LogicalPlan]): Boolean =
    Try(Reflection.call[AnyRef](extensions, "injectHintResolutionRule", rule)).isSuccess
}

/**
 * A view of the data source, for a table's name, as `contract/functions.json` declares it. The fields of its rows are found by
 * their names: those of the table function that it shows, or its own, and stored statistics.
 */
private[sql] final class View private (declared: JsonNode) {
  private type Fields = String => Option[Any]

  val name: String = declared.get("name").asText
  val narrowedBy: Seq[String] = Contract.texts(declared, "narrowed_by")
  private lazy val function = TableFunctions.named(declared.path("function").asText(SummaryFunction.name))

  def call(values: Map[String, Literal], keeps: (String, String) => Boolean): Arguments =
    new Arguments(function, values, keeps)

  /** The rows of all columns or of one, of the table or of one data file. */
  def read(session: SparkSession, call: Arguments, output: Seq[Attribute]): LocalRelation = name match {
    case "histograms_wide" => wide(ColumnDetails.all(session, call), output)
    case _ => LocalRelation(output, rows(session, call).map(ResultRow.named(output.map(_.name), _)))
  }

  private def rows(session: SparkSession, call: Arguments): Seq[Fields] = name match {
    case "frequencies" => ColumnDetails.all(session, call).filter(_.hasValueCounts).flatMap(frequencies)
    case "histograms" => ColumnDetails.all(session, call).flatMap(histogram)
    case "ranks" => ColumnDetails.all(session, call).flatMap(ranks)
    case _ => function match {
        case typed: StatisticsFunction =>
          typed.rowsWithStatistics(session, call).map { case (row, statistics) => fields(row, statistics) }
        case plain => plain.rows(session, call).map(fields(_, None))
      }
  }

  private def fields(row: InternalRow, statistics: Option[SummaryRow]): Fields = name =>
    function.schema.fieldNames.indexOf(name) match {
      case -1 => statistics.map(SummaryColumns.value(_, name))
      case i => Some(row.get(i, function.schema(i).dataType))
    }

  private def frequencies(column: ColumnDetails): Seq[Fields] = column.frequent(None).map { found =>
    val files = if (found.files.isEmpty) None else Some(countsOfFiles(column, found.files.toSeq.sorted))
    val shown = FrequenciesFunction.fields(column, found)
    (shown ++ Map(
      "column_name" -> column.leaf.name,
      s"value_${SummaryRow.encodingOf(found.value)}" -> found.value,
      "files" -> files)).get _
  }

  private def countsOfFiles(column: ColumnDetails, counts: Seq[(Int, Long)]): ArrayBasedMapData =
    ArrayBasedMapData(
      counts.map { case (file, _) => UTF8String.fromString(column.paths(file)) }.toArray[Any],
      counts.map(_._2).toArray[Any])

  private def histogram(column: ColumnDetails): Option[Fields] = column.bins.map { bins =>
    Map[String, Any](
      "column_name" -> column.leaf.name,
      "kind" -> bins.kind,
      "bins" -> bins.counts.length.toLong,
      s"edges_${SummaryRow.encodingOf(bins.edges.head)}" -> list(bins.edges),
      "counts" -> list(bins.counts),
      "distincts" -> (if (bins.distincts.isEmpty) None else list(bins.distincts)),
      "exact" -> (column.isWhole && bins.counts.indices.forall(bins.isExact))).get _
  }

  private def ranks(column: ColumnDetails): Seq[Fields] = column.rankedValues.map { case (value, rank) =>
    Map[String, Any](
      "column_name" -> column.leaf.name,
      s"value_${SummaryRow.encodingOf(value)}" -> value,
      "rank" -> rank).get _
  }

  /** A row for each edge, a column for each column of the table. */
  private def wide(columns: Seq[ColumnDetails], output: Seq[Attribute]): LocalRelation = {
    val edges = columns.map(column =>
      column.bins.fold(IndexedSeq.empty[Any])(_.edges.map(column.text.edge(_, column.row))))
    val attributes = columns.map(column => AttributeReference(column.leaf.name, StringType)())
    val longest = if (edges.isEmpty) 0 else edges.map(_.length).max
    LocalRelation(
      output ++ attributes,
      (0 until longest).map(i => ResultRow.row(Seq[Any](i.toLong) ++ edges.map(_.lift(i)): _*)))
  }

  private def list(values: Seq[Any]): GenericArrayData = new GenericArrayData(values.toArray[Any])
}

private[sql] object View {
  private lazy val all = Contract.named(Contract.read("functions").get("views")).map { case (name, one) =>
    name -> new View(one)
  }.toMap

  /** The options that narrow a view. */
  val narrowing: Seq[String] = Seq("column", "file")

  def named(name: String): Option[View] = all.get(name)
}

/** Reads the view `columns` when the filters have reached it, and of its rows what they ask for; Spark applies them once more. */
object ColumnsViewRule extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case filter @ Filter(condition, view: FunctionCall) =>
      filter.copy(child = view.read(allowed(splitConjunctivePredicates(condition), view.output)))
    case call: FunctionCall => call.read((_, _) => true) // where an analyzer without our rules left it, too
  }

  /** What the conjuncts leave of the values of a text column. */
  private def allowed(conjuncts: Seq[Expression], output: Seq[Attribute]): (String, String) => Boolean = {
    val columns = output.filter(_.dataType == StringType)
    def name(expression: Expression) = columns.find(_.semanticEquals(expression)).map(_.name)
    val sets = conjuncts.collect {
      case EqualTo(it, Literal(value, StringType)) => name(it) -> Set(value)
      case EqualTo(Literal(value, StringType), it) => name(it) -> Set(value)
      case In(it, values) if values.forall(_.isInstanceOf[Literal]) =>
        name(it) -> values.map(_.asInstanceOf[Literal].value).toSet
      case InSet(it, values) => name(it) -> values.toSet
    }.collect { case (Some(column), values) => column -> values.filter(_ != null).map(_.toString) }
    (column, text) => sets.forall { case (name, values) => name != column || values.contains(text) }
  }
}
