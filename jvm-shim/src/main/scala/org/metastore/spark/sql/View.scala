package org.metastore.spark.sql

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types.StringType

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.{SummaryRow, ValueCount}
import org.metastore.spark.statistics.values.Histogram

/**
 * A view of the data source for a table's name, as `contract/functions.json` declares it. The names of the
 * output columns select the fields of its rows: those of its table function, or its own, and stored
 * statistics.
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
    case "frequencies" => ColumnDetails.all(session, call).flatMap(frequencies)
    case "histograms" => ColumnDetails.all(session, call).flatMap(histogram)
    case "ranks" => ColumnDetails.all(session, call).flatMap(ranks)
    case _ => function match {
        case typed: StatisticsFunction =>
          for ((row, statistics) <- typed.rowsWithStatistics(session, call)) yield fields(row, statistics)
        case plain => plain.rows(session, call).map(fields(_, None))
      }
  }

  private def fields(row: InternalRow, statistics: Option[SummaryRow]): Fields = name =>
    function.schema.fieldNames.indexOf(name) match {
      case -1 => statistics.map(SummaryColumns.value(_, name))
      case i => Some(row.get(i, function.schema(i).dataType))
    }

  private def frequencies(column: ColumnDetails): Seq[Fields] =
    if (column.hasValueCounts) column.frequent(None).map(frequency(column, _)) else Nil

  private def frequency(column: ColumnDetails, counted: ValueCount): Fields = {
    val files = Optional.when(counted.files.nonEmpty)(countsOfFiles(column, counted.files.toSeq.sorted))
    val viewFields = Map(
      "column_name" -> column.leaf.name,
      s"value_${SummaryRow.encodingOf(counted.value)}" -> counted.value,
      "files" -> files)
    (FrequenciesFunction.fields(column, counted) ++ viewFields).get _
  }

  private def countsOfFiles(column: ColumnDetails, counts: Seq[(Int, Long)]): ArrayBasedMapData =
    ResultRow.counts(for ((file, count) <- counts) yield column.paths(file) -> count)

  private def histogram(column: ColumnDetails): Option[Fields] = column.bins.map { bins =>
    Map[String, Any](
      "column_name" -> column.leaf.name,
      "kind" -> Histogram.EquiHeight,
      "bins" -> bins.counts.length.toLong,
      s"edges_${SummaryRow.encodingOf(bins.edges.head)}" -> list(bins.edges),
      "counts" -> list(bins.counts),
      "distincts" -> (if (bins.distincts.isEmpty) None else list(bins.distincts)),
      "exact" -> (column.isWhole && bins.counts.indices.forall(bins.isExact))).get _
  }

  private def ranks(column: ColumnDetails): Seq[Fields] = for ((value, rank) <- column.rankedValues) yield {
    Map[String, Any](
      "column_name" -> column.leaf.name,
      s"value_${SummaryRow.encodingOf(value)}" -> value,
      "rank" -> rank).get _
  }

  /** A row for each edge, a column for each column of the table. */
  private def wide(columns: Seq[ColumnDetails], output: Seq[Attribute]): LocalRelation = {
    val attributes = columns.map(column => AttributeReference(column.leaf.name, StringType)())
    val edges = columns.map(_.edgeTexts)
    val longest = if (edges.isEmpty) 0 else edges.map(_.length).max
    val rows =
      (0 until longest).map(i => ResultRow.row(Seq[Any](i.toLong) ++ edges.map(_.lift(i)): _*))
    LocalRelation(output ++ attributes, rows)
  }

  private def list(values: Seq[Any]): GenericArrayData = new GenericArrayData(values.toArray[Any])
}

private[sql] object View {
  private lazy val all = {
    val views =
      for ((name, declared) <- Contract.named(Contract.read("functions").get("views")))
        yield name -> new View(declared)
    views.toMap
  }

  /** The options that narrow a view. */
  val narrowing: Seq[String] = Seq("column", "file")

  def named(name: String): Option[View] = all.get(name)
}
