package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, EqualTo, Expression, In, InSet, Literal, NamedArgumentExpression, PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LocalRelation, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.connector.catalog.SupportsRead
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.{MetastoreConf, PythonInterpreter}
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.statistics.objects.SummaryRow
import org.metastore.spark.tables.{Reflection, TableFormats, TableLookup}

/**
 * Answers `spark.read.format("metastore").option("table", "db.t")`. The data source is Python's, and the worker that reads it has
 * no session to resolve a name with; here there is one. A location needs no session and is left to Python.
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

/** Finds `spark.read.format("metastore")` as Spark does, and says in one line what is wrong with it. */
final class DataSourceErrorRule(session: SparkSession) extends Rule[LogicalPlan] {
  private val Unresolved = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource"
  private lazy val finding = Reflection.load("org.apache.spark.sql.catalyst.analysis.ResolveDataSource", getClass.getClassLoader)
    .getConstructors.head.newInstance(session).asInstanceOf[Rule[LogicalPlan]]

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case source if isOurs(source) => withClearErrors {
      val found = finding(source)
      found.foreach {
        case relation: DataSourceV2Relation if isReadInPython(relation) => read(relation)
        case _ =>
      }
      found
    }
  }

  private def isOurs(node: LogicalPlan): Boolean = node.getClass.getName == Unresolved && (node.productElement(0) match {
    case source: String => source.toLowerCase(Locale.ROOT) == "metastore"
    case _ => false
  })

  private def isReadInPython(relation: DataSourceV2Relation): Boolean = {
    val named = relation.options.asCaseSensitiveMap.asScala.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    named.get("path").orElse(named.get("table")).forall(TableFormats.isLocation)
  }

  /** Has Spark make the source's reader, which it keeps: what is wrong with a location is found when a task would begin. */
  private def read(relation: DataSourceV2Relation): Unit = relation.table match {
    case readable: SupportsRead => readable.newScanBuilder(relation.options).build().toBatch.planInputPartitions()
    case _ =>
  }

  private def withClearErrors(find: => LogicalPlan): LogicalPlan = try find catch {
    case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
      throw MetastoreException.sourceNotFound(PythonInterpreter.of(session.sparkContext).command, e)
    case e: Exception => throw MetastoreException.fromPython(e).getOrElse(e)
  }
}

object DataSourceErrorRule {

  /** Before Spark 4.1 there is no place for rules that come so early: Spark's own errors stay. */
  def inject(extensions: SparkSessionExtensions): Unit = {
    val rule: SparkSession => Rule[LogicalPlan] = new DataSourceErrorRule(_)
    Try(Reflection.call[AnyRef](extensions, "injectHintResolutionRule", rule))
  }
}

/** The views `frequencies`, `histograms`, `histograms_wide` and `ranks` of the data source, for a table's name. */
private[sql] object DistributionViews {
  val names: Set[String] = Set("frequencies", "histograms", "histograms_wide", "ranks")

  /** A view of all columns or of one, of the table or of one data file. */
  def relation(
      session: SparkSession, view: String, table: String, column: Option[String], file: Option[String],
      output: Seq[Attribute]): LocalRelation = {
    val columns = ColumnDetails.all(session, table, column, file)
    view match {
      case "frequencies" => LocalRelation(output, columns.filter(_.hasValueCounts).flatMap(frequencies).map(row(_, output)))
      case "histograms" => LocalRelation(output, columns.flatMap(histogram).map(row(_, output)))
      case "ranks" => LocalRelation(output, columns.flatMap(ranks).map(row(_, output)))
      case _ => wide(columns, output)
    }
  }

  private def frequencies(column: ColumnDetails): Seq[Map[String, Any]] = column.frequent(None).map { found =>
    Map(
      "column_name" -> column.leaf.name, "value" -> column.text.value(Some(found.value)), "frequency" -> found.frequency,
      "fraction" -> column.values.filter(_ > 0).map(found.frequency.toDouble / _), "exact" -> (column.isWhole && found.error == 0),
      "error" -> Some(found.error).filter(_ => column.isWhole), s"value_${encoding(found.value)}" -> found.value, "files" -> files(column, found.files.toSeq.sorted))
  }

  private def files(column: ColumnDetails, counts: Seq[(Int, Long)]): Option[ArrayBasedMapData] =
    if (counts.isEmpty) None
    else Some(ArrayBasedMapData(
      counts.map { case (file, _) => UTF8String.fromString(column.paths(file)) }.toArray[Any], counts.map(_._2).toArray[Any]))

  private def histogram(column: ColumnDetails): Option[Map[String, Any]] = column.bins.map { bins =>
    Map(
      "column_name" -> column.leaf.name, "kind" -> bins.kind, "bins" -> bins.counts.length.toLong,
      s"edges_${encoding(bins.edges.head)}" -> list(bins.edges), "counts" -> list(bins.counts),
      "distincts" -> (if (bins.distincts.isEmpty) None else list(bins.distincts)),
      "exact" -> (column.isWhole && bins.counts.indices.forall(bins.isExact)))
  }

  private def ranks(column: ColumnDetails): Seq[Map[String, Any]] = column.rankedValues.map { case (value, rank) =>
    Map("column_name" -> column.leaf.name, s"value_${encoding(value)}" -> value, "rank" -> rank)
  }

  /** A row for each edge, a column for each column of the table. */
  private def wide(columns: Seq[ColumnDetails], output: Seq[Attribute]): LocalRelation = {
    val edges = columns.map(column => column.bins.fold(IndexedSeq.empty[Any])(_.edges.map(column.text.edge(_, column.row))))
    val attributes = columns.map(column => AttributeReference(column.leaf.name, StringType)())
    val longest = if (edges.isEmpty) 0 else edges.map(_.length).max
    LocalRelation(output ++ attributes, (0 until longest).map(i => ResultRow.row(Seq[Any](i.toLong) ++ edges.map(_.lift(i)): _*)))
  }

  private def row(values: Map[String, Any], output: Seq[Attribute]): InternalRow =
    ResultRow.row(output.map(attribute => values.getOrElse(attribute.name, None)): _*)

  private def encoding(value: Any): String = value match {
    case _: Long => "long"
    case _: Double => "double"
    case _ => "binary"
  }

  private def list(values: Seq[Any]): GenericArrayData = new GenericArrayData(values.toArray[Any])
}

/**
 * The view `columns` of the data source before it is read: it has a row for every column of every data file, and what of it is
 * read depends on the filters of each query.
 */
final case class ColumnsView(output: Seq[Attribute], table: String, options: Map[String, String])(
    val read: (String => Boolean, String => Boolean) => LocalRelation) extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(read)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(read)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  /** The rows, under this plan's attributes. */
  def rows(columns: String => Boolean, files: String => Boolean): LocalRelation = read(columns, files).copy(output = output)
}

/** Reads the view when the filters have reached it; Spark applies them once more. */
object ColumnsViewRule extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case filter @ Filter(condition, view: ColumnsView) =>
      val conjuncts = splitConjunctivePredicates(condition)
      filter.copy(child = view.rows(allowed(conjuncts, view, "column_name"), allowed(conjuncts, view, "path")))
    case call: FunctionCall => call.answer // an analyzer without our rules left it
    case view: ColumnsView => view.rows(_ => true, _ => true)
  }

  /** What the conjuncts leave of a text column's values. */
  private def allowed(conjuncts: Seq[Expression], view: ColumnsView, name: String): String => Boolean = {
    val column = view.output.filter(a => a.name == name && a.dataType == StringType)
    def isIt(expression: Expression) = column.exists(_.semanticEquals(expression))
    val sets = conjuncts.collect {
      case EqualTo(it, Literal(value, StringType)) if isIt(it) => Set(value)
      case EqualTo(Literal(value, StringType), it) if isIt(it) => Set(value)
      case In(it, values) if isIt(it) && values.forall(_.isInstanceOf[Literal]) => values.map(_.asInstanceOf[Literal].value).toSet
      case InSet(it, values) if isIt(it) => values.toSet
    }.map(_.filter(_ != null).map(_.toString))
    text => sets.forall(_.contains(text))
  }
}
