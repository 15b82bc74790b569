package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

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
