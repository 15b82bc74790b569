package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DoubleType, StringType}

import org.metastore.spark.reason.{MetastoreException, Optional}
import org.metastore.spark.statistics.objects.ValueCount
import org.metastore.spark.statistics.values.Histogram

/** `metastore.frequencies(table, column [, top] [, file] [, at])`: one row a value, most frequent first. */
object FrequenciesFunction extends TableFunction("frequencies") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val top = call.positive("top")
    val column = ColumnDetails.fromCall(session, call)
    column.frequent(top).map(counted => ResultRow.named(schema.fieldNames.toSeq, fields(column, counted).get))
  }

  /** The fields of a value, by their names. */
  def fields(column: ColumnDetails, counted: ValueCount): Map[String, Any] = {
    val error = Optional.when(column.isWhole)(counted.error)
    val fraction = for (values <- column.values if values > 0) yield counted.frequency.toDouble / values
    Map(
      "value" -> column.text.value(Some(counted.value)),
      "frequency" -> counted.frequency,
      "exact" -> error.contains(0L),
      "error" -> error,
      "fraction" -> fraction)
  }
}

/** `metastore.histogram(table, column [, bins] [, file] [, at])`: one row a bin. */
object HistogramFunction extends TableFunction("histogram") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val most = call.positive("bins").getOrElse(Int.MaxValue)
    val column = ColumnDetails.fromCall(session, call)
    column.histogram.toSeq.flatMap(bins => rows(column, bins.coarsen(most)))
  }

  private def rows(column: ColumnDetails, bins: Histogram): Seq[InternalRow] = {
    val edges = bins.edges.map(column.text.edge(_, column.row))
    bins.counts.indices.map { i =>
      ResultRow.row(
        i.toLong,
        edges(i),
        edges(i + 1),
        bins.counts(i),
        bins.distincts.lift(i),
        column.isWhole && bins.isExact(i))
    }
  }
}

/** `metastore.quantiles(table, column [, probabilities] [, at])`: one row a probability. */
object QuantilesFunction extends TableFunction("quantiles") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val requested = probabilities(call.value("probabilities").get)
    val column = ColumnDetails.fromCall(session, call)
    column.quantiles(requested) match {
      case Some(exact) =>
        for ((p, value) <- requested.zip(exact))
          yield ResultRow.row(
            p,
            column.text.value(value),
            column.isRequested,
            Optional.when(column.isRequested)(0.0))
      case None => column.histogram match {
          case Some(bins) => requested.map(quantile(column, bins, _))
          case None =>
            requested.map(ResultRow.row(_, None, column.isWhole, Optional.when(column.isWhole)(0.0)))
        }
    }
  }

  /** A value of a column; `isWhole` unless it is the beginning of a longer text. */
  private final case class ShownValue(value: Any, isWhole: Boolean, error: Option[Long])

  private def quantile(column: ColumnDetails, bins: Histogram, probability: Double): InternalRow = {
    val rank = math.max(1L, math.ceil(probability * bins.number).toLong)
    val quantile = boundAt(column, bins, rank).getOrElse(valueAt(column, bins, rank))
    val share = quantile.error.map(_.toDouble / bins.number)
    ResultRow.row(
      probability,
      column.text.bound(Some(quantile.value), quantile.isWhole),
      share.contains(0.0) && quantile.isWhole,
      share)
  }

  /** The bound of the column at the first or the last rank, as summary shows it. */
  private def boundAt(column: ColumnDetails, bins: Histogram, rank: Long): Option[ShownValue] = {
    val row = column.row
    if (!column.isWhole) None
    else if (rank == 1) row.lo.map(ShownValue(_, row.loExact, Some(0L)))
    else if (rank == bins.number) row.hi.map(ShownValue(_, row.hiExact, Some(0L)))
    else None
  }

  private def valueAt(column: ColumnDetails, bins: Histogram, rank: Long): ShownValue = {
    val bin = bins.at(rank)
    val error = if (column.isWhole) bin.error else None
    ShownValue(bin.value, column.text.isWhole(bin.value, column.row), error)
  }

  private def probabilities(argument: Literal): Seq[Double] = {
    val values = argument.dataType match {
      case ArrayType(element, _) =>
        argument.value.asInstanceOf[ArrayData].toSeq[Any](element).map(Literal(_, element))
      case _ =>
        val texts = Arguments.cast(argument, StringType).toString.split(',')
        texts.toSeq.map(text => Literal(text.trim))
    }
    if (values.isEmpty) throw MetastoreException.invalidArgument("probabilities", "none is given")
    values.map(probability)
  }

  private def probability(value: Literal): Double = Arguments.cast(value, DoubleType) match {
    case number: Double if number >= 0 && number <= 1 => number
    case _ =>
      throw MetastoreException.invalidArgument(
        "probabilities",
        s"${value.toString} is not a number from 0 to 1")
  }
}
