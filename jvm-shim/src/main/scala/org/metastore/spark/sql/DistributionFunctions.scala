package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DoubleType, StringType}

import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.statistics.objects.ValueCount
import org.metastore.spark.statistics.values.Histogram

/** `metastore.frequencies(table, column [, top] [, file] [, at])`: one row a value, most frequent first. */
object FrequenciesFunction extends TableFunction("frequencies") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val top = call.positive("top")
    val column = ColumnDetails.find(session, call)
    val names = schema.map(_.name)
    column.frequent(top).map(found => ResultRow.named(names, fields(column, found).get))
  }

  /** What is shown of a value, by the names of the fields. */
  def fields(column: ColumnDetails, found: ValueCount): Map[String, Any] = {
    val error = if (column.isWhole) Some(found.error) else None
    Map(
      "value" -> column.text.value(Some(found.value)),
      "frequency" -> found.frequency,
      "exact" -> error.contains(0L),
      "error" -> error,
      "fraction" -> column.values.filter(_ > 0).map(found.frequency.toDouble / _))
  }
}

/** `metastore.histogram(table, column [, bins] [, file] [, at])`: one row a bin. */
object HistogramFunction extends TableFunction("histogram") {
  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val wanted = call.positive("bins")
    val column = ColumnDetails.find(session, call)
    column.histogram.toSeq.flatMap(bins => rows(column, bins.coarsen(wanted.getOrElse(Int.MaxValue))))
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
    val wanted = probabilities(call.value("probabilities").get)
    val column = ColumnDetails.find(session, call)
    column.quantiles(wanted) match {
      case Some(exact) =>
        for ((p, value) <- wanted.zip(exact))
          yield ResultRow.row(p, column.text.value(value), column.isRequested, noErrorIf(column.isRequested))
      case None => column.histogram match {
          case Some(bins) => wanted.map(quantile(column, bins, _))
          case None => wanted.map(ResultRow.row(_, None, column.isWhole, noErrorIf(column.isWhole)))
        }
    }
  }

  private def quantile(column: ColumnDetails, bins: Histogram, probability: Double): InternalRow = {
    val rank = math.max(1L, math.ceil(probability * bins.number).toLong)
    val found = bins.at(rank)
    val bound = // as summary shows it
      if (!column.isWhole) None
      else if (rank == 1) column.row.lo.map(_ -> column.row.loExact)
      else if (rank == bins.number) column.row.hi.map(_ -> column.row.hiExact)
      else None
    val error = if (bound.isDefined) Some(0L) else if (column.isWhole) found.error else None
    val share = error.map(_.toDouble / bins.number)
    val (value, isWhole) = bound.getOrElse(found.value -> column.text.isWhole(found.value, column.row))
    ResultRow.row(probability, column.text.bound(Some(value), isWhole), share.contains(0.0) && isWhole, share)
  }

  private def noErrorIf(isKnown: Boolean): Option[Double] = if (isKnown) Some(0) else None

  private def probabilities(asked: Literal): Seq[Double] = {
    val values = asked.dataType match {
      case ArrayType(element, _) =>
        asked.value.asInstanceOf[ArrayData].toSeq[Any](element).map(Literal(_, element))
      case _ =>
        val texts = Arguments.cast(asked, StringType).toString.split(',')
        texts.toSeq.map(text => Literal(text.trim))
    }
    if (values.isEmpty) throw MetastoreException.invalidArgument("probabilities", "none is given")
    values.map(probability)
  }

  private def probability(asked: Literal): Double = Arguments.cast(asked, DoubleType) match {
    case number: Double if number >= 0 && number <= 1 => number
    case _ =>
      throw MetastoreException.invalidArgument(
        "probabilities",
        s"${asked.toString} is not a number from 0 to 1")
  }
}
