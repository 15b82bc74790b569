package org.metastore.spark.sql

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.{DoubleType, NumericType, StringType}

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.MetastoreException

/**
 * `metastore.diff(table, from [, to])`: one row a column and measure of the summary that differs between two snapshots. With
 * `distributions => true` more rows, from the Python that runs ANALYZE, tell how far the values of columns are distributed otherwise.
 */
object DiffFunction extends TableFunction("diff") with AnsweredByPython {

  /** Asks about a table and two of its snapshots: a list of rows, each an object of fields. */
  override type Ask = (SparkSession, String, String, String) => JsonNode

  private lazy val measures = Contract.texts(declared, "measures")

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = differences(before(session, call), after(session, call))

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] =
    if (!call.flag("distributions")) None
    else {
      val (old, current) = (before(session, call), after(session, call))
      val all = differences(old, current)
      val names = current.map(_.columnName)
      Some { () =>
        val found = askPython(session, call.text("table"), snapshot(old), snapshot(current)).elements.asScala.map(moved).toSeq
        val ofColumn = (all ++ found).groupBy(nameOf)
        names.flatMap(ofColumn.getOrElse(_, Nil)) ++ all.filterNot(row => names.contains(nameOf(row)))
      }
    }

  private def before(session: SparkSession, call: Arguments): Seq[SummaryLine] = {
    call.text("from") // NULL is no snapshot
    summary(session, call, "from")
  }

  private def after(session: SparkSession, call: Arguments): Seq[SummaryLine] = summary(session, call, "to")

  private def snapshot(lines: Seq[SummaryLine]): String = lines.headOption.flatMap(_.text("snapshot")).orNull

  private def nameOf(row: InternalRow): String = row.getUTF8String(0).toString

  private def moved(row: JsonNode): InternalRow = {
    def text(field: String): Option[String] = Option(row.get(field)).filterNot(_.isNull).map(_.asText)
    ResultRow.row(text("column_name"), text("measure"), None, None, text("change").map(_.toDouble), text("reason"))
  }

  private def differences(before: Seq[SummaryLine], after: Seq[SummaryLine]): Seq[InternalRow] = {
    val names = after.map(_.columnName) ++ before.map(_.columnName).diff(after.map(_.columnName))
    val (old, current) = (before.map(row => row.columnName -> row).toMap, after.map(row => row.columnName -> row).toMap)
    for {
      column <- names
      measure <- measures
      (was, now) = (old.get(column), current.get(column))
      (textBefore, textAfter) = (was.flatMap(_.text(measure)), now.flatMap(_.text(measure)))
      if textBefore != textAfter && !(was.isDefined && now.isDefined && isNoise(measure, was.get, now.get))
    } yield {
      val change = for (one <- was; other <- now; first <- one.number(measure); second <- other.number(measure)) yield second - first
      ResultRow.row(column, measure, textBefore, textAfter, change, None)
    }
  }

  /** Whether a measure differs by no more than it may for the same rows in another order. */
  private def isNoise(measure: String, before: SummaryLine, after: SummaryLine): Boolean =
    OfSums(measure) && before.number(measure).zip(after.number(measure)).exists { case (first, second) =>
      val spread = if (measure == "avg") Seq(before, after).flatMap(_.number("std")).foldLeft(0.0)(math.max) else 0.0
      math.abs(first - second) <= Noise * Seq(math.abs(first), math.abs(second), spread).max // around 0 the spread alone is left
    }

  private def summary(session: SparkSession, call: Arguments, at: String): Seq[SummaryLine] = {
    val asked = Seq("table" -> call.value("table"), "at" -> call.value(at)).collect { case (argument, Some(given)) => argument -> given }
    try SummaryFunction.rows(session, new Arguments(SummaryFunction, asked.toMap)).map(new SummaryLine(_))
    catch { case error: MetastoreException => throw error.ofArgument("at", at) }
  }

  /** A row of `metastore.summary`, its fields by name. */
  private final class SummaryLine(row: InternalRow) {
    val columnName: String = text("column_name").get

    def text(field: String): Option[String] = Option(Arguments.cast(value(field), StringType)).map(_.toString)

    /** The value as a number, where it is one: bounds are texts, of whatever type the column is. */
    def number(field: String): Option[Double] = {
      val found = value(field)
      val isNumber = found.dataType.isInstanceOf[NumericType] || text("column_type").exists(IsNumber.pattern.matcher(_).matches)
      if (!isNumber) None
      else Option(Arguments.cast(found, DoubleType)).map(_.asInstanceOf[Double]).filterNot(n => n.isNaN || n.isInfinite)
    }

    private def value(field: String): Literal = {
      val place = SummaryFunction.schema.fieldIndex(field)
      val dataType = SummaryFunction.schema(place).dataType
      Literal(row.get(place, dataType), dataType)
    }
  }

  /** Measures that are made of floating-point sums: another order of the same rows changes their last digits. */
  private val OfSums = Set("avg", "std", "avg_len")
  private val Noise = 1e-9 // so much of such a measure is no difference
  private val IsNumber = "tinyint|smallint|int|bigint|float|double|decimal\\(.*".r
}
