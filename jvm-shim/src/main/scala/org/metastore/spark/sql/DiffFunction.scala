package org.metastore.spark.sql

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.{
  DataType, DateType, DoubleType, NumericType, StringType, TimestampNTZType, TimestampType
}

import org.metastore.spark.contract.Contract
import org.metastore.spark.python.{AttachedPython, DiffStatement}
import org.metastore.spark.reason.{Indexed, MetastoreException}

/**
 * `metastore.diff(table, from [, to] [, distributions] [, added])`: one row a column and measure of the summary that differs between
 * two snapshots, the largest change first. The Python that runs ANALYZE tells of distributions and of data files that were added.
 */
object DiffFunction extends TableFunction("diff") {
  private lazy val measures = Contract.texts(declared, "measures")

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    sortByChange(differences(before(session, call), after(session, call)))

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = {
    val (added, distributions) = (call.flag("added"), call.flag("distributions"))
    if (!added && !distributions) None
    else {
      val (old, current) = (before(session, call), after(session, call))
      val statement =
        DiffStatement(call.text("table"), snapshot(old), snapshot(current), added, distributions)
      val known = if (added) Nil else differences(old, current)
      Some(() => sortByChange(known ++ AttachedPython.run(session, statement).elements.asScala.map(toRow)))
    }
  }

  private def before(session: SparkSession, call: Arguments): Seq[SummaryLine] = {
    call.text("from") // NULL is no snapshot
    summary(session, call, "from")
  }

  private def after(session: SparkSession, call: Arguments): Seq[SummaryLine] = summary(session, call, "to")

  private def snapshot(lines: Seq[SummaryLine]): String = lines.headOption.flatMap(_.text("snapshot")).orNull

  private def toRow(row: JsonNode): InternalRow = {
    def text(field: String): Option[String] =
      if (row.hasNonNull(field)) Some(row.get(field).asText) else None
    ResultRow.row(
      text("column_name"),
      text("measure"),
      text("before"),
      text("after"),
      text("change").map(_.toDouble),
      text("reason"))
  }

  private def differences(before: Seq[SummaryLine], after: Seq[SummaryLine]): Seq[InternalRow] = {
    val namesAfter = after.map(_.columnName)
    val names = namesAfter ++ before.map(_.columnName).diff(namesAfter)
    val (old, current) = (Indexed.by(before)(_.columnName), Indexed.by(after)(_.columnName))
    val both = names.filter(name => old.contains(name) && current.contains(name))
    val counts =
      for {
        measure <- OfTable
        count <- tableCounts(measure, both.map(old), both.map(current))
      } yield measure -> count
    val tableRows =
      for ((measure, (was, now)) <- counts if was != now)
        yield ResultRow.row(None, measure, was.toString, now.toString, (now - was).toDouble, None)
    val ofTable = counts.toMap
    val columnRows = for {
      column <- names
      measure <- measures
      (was, now) = (old.get(column), current.get(column))
      (textBefore, textAfter) = (was.flatMap(_.text(measure)), now.flatMap(_.text(measure)))
      if textBefore != textAfter && !isNoise(measure, was, now)
      if !isToldOfTable(measure, textBefore, textAfter, ofTable)
    } yield {
      val change =
        for {
          one <- was
          other <- now
          first <- one.number(measure)
          second <- other.number(measure)
        } yield second - first
      ResultRow.row(column, measure, textBefore, textAfter, change, None)
    }
    tableRows ++ columnRows
  }

  /** A measure of the whole table in both snapshots, by the columns of both; `None` where it is not known. */
  private def tableCounts(
      measure: String,
      old: Seq[SummaryLine],
      current: Seq[SummaryLine]): Option[(Long, Long)] =
    for {
      was <- largest(measure, old)
      now <- largest(measure, current)
    } yield (was, now)

  private def largest(measure: String, lines: Seq[SummaryLine]): Option[Long] = {
    val counts = for (line <- lines; number <- line.number(measure)) yield number.toLong
    if (counts.isEmpty) None else Some(counts.max)
  }

  /** Whether a row of a column says what the table's row says, or only that the column is new or gone. */
  private def isToldOfTable(
      measure: String,
      before: Option[String],
      after: Option[String],
      ofTable: Map[String, (Long, Long)]): Boolean =
    ofTable.get(measure) match {
      case None => false
      case Some((was, now)) =>
        before.isEmpty || after.isEmpty || (before.contains(was.toString) && after.contains(now.toString))
    }

  /** What is true of the whole table first, then the largest changes, then what is no number. */
  private def sortByChange(rows: Seq[InternalRow]): Seq[InternalRow] = {
    val (ofTable, others) = rows.partition(_.isNullAt(0))
    val (numbers, texts) = others.partition(!_.isNullAt(Change))
    ofTable ++ numbers.sortBy(row => -shareOfChange(row)) ++ texts
  }

  /** A change as a share of what it changed; that of a distribution is one already. */
  private def shareOfChange(row: InternalRow): Double = {
    val change = math.abs(row.getDouble(Change))
    val whole = math.max(magnitude(row, Before), magnitude(row, After))
    if (whole == 0) change else change / whole
  }

  /** The size of the number in a cell; 0 where there is none. */
  private def magnitude(row: InternalRow, place: Int): Double =
    if (row.isNullAt(place)) 0
    else Try(math.abs(row.getUTF8String(place).toString.toDouble)).getOrElse(0)

  /** Whether a measure differs by no more than it may for the same rows in another order. */
  private def isNoise(measure: String, before: Option[SummaryLine], after: Option[SummaryLine]): Boolean =
    (before, after) match {
      case (Some(was), Some(now)) if OfSums(measure) =>
        val differences =
          for {
            first <- was.number(measure)
            second <- now.number(measure)
          } yield {
            // around 0 the spread alone is left
            val spread = if (measure == "avg") math.max(was.deviation, now.deviation) else 0.0
            math.abs(first - second) <= Noise * Seq(math.abs(first), math.abs(second), spread).max
          }
        differences.contains(true)
      case _ => false
    }

  private def summary(session: SparkSession, call: Arguments, at: String): Seq[SummaryLine] = {
    val values =
      for ((name, given) <- Seq("table" -> "table", "at" -> at); value <- call.value(given))
        yield name -> value
    val arguments = new Arguments(SummaryFunction, values.toMap)
    try SummaryFunction.rows(session, arguments).map(new SummaryLine(_))
    catch { case error: MetastoreException => throw error.ofArgument("at", at) }
  }

  /** A row of `metastore.summary`, its fields by name. */
  private final class SummaryLine(row: InternalRow) {
    val columnName: String = text("column_name").get

    def text(field: String): Option[String] =
      averageTime(field).orElse(Option(Arguments.cast(value(field), StringType)).map(_.toString))

    /** The standard deviation; 0 if unknown. */
    def deviation: Double = number("std").getOrElse(0)

    /** The average of a column of dates or times as one of them. */
    private def averageTime(field: String): Option[String] =
      if (field != "avg") None
      else for {
        dataType <- Times.get(columnType)
        average <- Option(value(field).value)
      } yield {
        val whole = math.floor(average.asInstanceOf[Double])
        val literal =
          if (dataType == DateType) Literal(whole.toInt, dataType)
          else Literal(whole.toLong, dataType)
        Arguments.cast(literal, StringType).toString
      }

    /** The value as a number, where it is one: bounds are texts, of whatever type the column is. */
    def number(field: String): Option[Double] = {
      val literal = value(field)
      val isNumber =
        literal.dataType.isInstanceOf[NumericType] || IsNumber.pattern.matcher(columnType).matches
      if (!isNumber) None
      else Arguments.cast(literal, DoubleType) match {
        case number: Double if !number.isNaN && !number.isInfinite => Some(number)
        case _ => None
      }
    }

    private def columnType: String = String.valueOf(Arguments.cast(value("column_type"), StringType))

    private def value(field: String): Literal = {
      val place = SummaryFunction.schema.fieldIndex(field)
      val dataType = SummaryFunction.schema(place).dataType
      Literal(row.get(place, dataType), dataType)
    }
  }

  /** Measures that are made of floating-point sums: another order of the same rows changes their last digits. */
  private val OfSums = Set("avg", "std", "avg_len")
  private val Noise = 1e-9 // so much of such a measure is no difference
  // places in a row
  private val Before = 2
  private val After = 3
  private val Change = 4
  private val OfTable = Seq("count", "files")
  private val Times = Map[String, DataType](
    "date" -> DateType,
    "timestamp" -> TimestampType,
    "timestamp_ntz" -> TimestampNTZType)
  private val IsNumber = "tinyint|smallint|int|bigint|float|double|decimal\\(.*".r
}
