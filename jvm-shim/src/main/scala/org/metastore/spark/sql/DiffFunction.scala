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
import org.metastore.spark.reason.{Indexed, MetastoreException, Optional}

/**
 * `metastore.diff(table, from [, to] [, distributions] [, added])`: one row for each column and measure of
 * the summary that differs between two snapshots, the largest change first. Python compares distributions and
 * reads data files that were added.
 */
object DiffFunction extends TableFunction("diff") {
  private lazy val measures = Contract.texts(declared, "measures")

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    sortByChange(differences(before(session, call), after(session, call)))

  override def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = {
    val added = call.flag("added")
    val distributions = call.flag("distributions")
    if (!added && !distributions) None
    else {
      val old = before(session, call)
      val current = after(session, call)
      val statement =
        DiffStatement(call.text("table"), snapshot(old), snapshot(current), added, distributions)
      val summaryRows = if (added) Nil else differences(old, current)
      Some { () =>
        val fromPython = AttachedPython.run(session, statement).elements.asScala.map(toRow)
        sortByChange(summaryRows ++ fromPython)
      }
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
      Optional.when(row.hasNonNull(field))(row.get(field).asText)
    ResultRow.row(
      text("column_name"),
      text("measure"),
      text("before"),
      text("after"),
      text("change").map(_.toDouble),
      text("reason"))
  }

  private def differences(before: Seq[SummaryLine], after: Seq[SummaryLine]): Seq[InternalRow] = {
    val old = Indexed.by(before)(_.columnName)
    val current = Indexed.by(after)(_.columnName)
    val names = after.map(_.columnName) ++ before.map(_.columnName).filterNot(current.contains)
    val inBoth = names.filter(name => old.contains(name) && current.contains(name))
    val tableChanges = TableMeasures.flatMap(tableChange(_, inBoth.map(old), inBoth.map(current)))
    val columnRows = for {
      name <- names
      measure <- measures
      row <- columnChange(name, measure, old.get(name), current.get(name), tableChanges)
    } yield row
    val tableRows = for (change <- tableChanges if change.before != change.after) yield change.toRow
    tableRows ++ columnRows
  }

  /** A measure of the whole table in both snapshots. */
  private final case class TableChange(measure: String, before: Long, after: Long) {
    def toRow: InternalRow =
      ResultRow.row(None, measure, before.toString, after.toString, (after - before).toDouble, None)
  }

  /** A measure of the whole table, by the columns of both snapshots; `None` where it is not known. */
  private def tableChange(
      measure: String,
      old: Seq[SummaryLine],
      current: Seq[SummaryLine]): Option[TableChange] =
    for {
      before <- largest(measure, old)
      after <- largest(measure, current)
    } yield TableChange(measure, before, after)

  private def largest(measure: String, lines: Seq[SummaryLine]): Option[Long] = {
    val counts = for (line <- lines; number <- line.number(measure)) yield number.toLong
    Optional.when(counts.nonEmpty)(counts.max)
  }

  private def columnChange(
      column: String,
      measure: String,
      before: Option[SummaryLine],
      after: Option[SummaryLine],
      tableChanges: Seq[TableChange]): Option[InternalRow] = {
    val textBefore = before.flatMap(_.text(measure))
    val textAfter = after.flatMap(_.text(measure))
    val isSame = textBefore == textAfter || isNoise(measure, before, after)
    val tableChange = tableChanges.find(_.measure == measure)
    val isShownByTable = tableChange.exists { change =>
      isOfNewOrDroppedColumn(textBefore, textAfter) || isTableChange(change, textBefore, textAfter)
    }
    if (isSame || isShownByTable) None
    else {
      val change =
        for ((first, second) <- numbers(measure, before, after)) yield second - first
      Some(ResultRow.row(column, measure, textBefore, textAfter, change, None))
    }
  }

  /** The numbers of a measure of a column, where both lines have one. */
  private def numbers(
      measure: String,
      before: Option[SummaryLine],
      after: Option[SummaryLine]): Option[(Double, Double)] =
    for {
      old <- before
      current <- after
      first <- old.number(measure)
      second <- current.number(measure)
    } yield (first, second)

  /**
   * Whether only one of two snapshots has the measure: a row would show no more than a new or dropped column.
   */
  private def isOfNewOrDroppedColumn(before: Option[String], after: Option[String]): Boolean =
    before.isEmpty || after.isEmpty

  /** Whether a column has the same change as the table, which a row of its own shows. */
  private def isTableChange(change: TableChange, before: Option[String], after: Option[String]): Boolean =
    before.contains(change.before.toString) && after.contains(change.after.toString)

  /**
   * Sorts changes of the table to the front, then the largest changes of columns, then those without a
   * number.
   */
  private def sortByChange(rows: Seq[InternalRow]): Seq[InternalRow] = {
    val (tableRows, columnRows) = rows.partition(_.isNullAt(0))
    val (numbers, texts) = columnRows.partition(!_.isNullAt(Change))
    tableRows ++ numbers.sortBy(row => -shareOfChange(row)) ++ texts
  }

  /** A change as a share of the larger of both values; a change of a distribution is a share already. */
  private def shareOfChange(row: InternalRow): Double = {
    val change = math.abs(row.getDouble(Change))
    val larger = math.max(magnitude(row, Before), magnitude(row, After))
    if (larger == 0) change else change / larger
  }

  /** The absolute number of a cell; 0 if it is no number. */
  private def magnitude(row: InternalRow, ordinal: Int): Double =
    if (row.isNullAt(ordinal)) 0
    else Try(math.abs(row.getUTF8String(ordinal).toString.toDouble)).getOrElse(0)

  /** Whether a change is so small that another order of the same rows may cause it. */
  private def isNoise(measure: String, before: Option[SummaryLine], after: Option[SummaryLine]): Boolean =
    numbers(measure, before, after) match {
      case Some((first, second)) if OfSums(measure) =>
        // Near 0 only the spread says how large the noise is.
        val spread = if (measure == "avg") (before ++ after).map(_.deviation).max else 0.0
        math.abs(first - second) <= Noise * Seq(math.abs(first), math.abs(second), spread).max
      case _ => false
    }

  /** The summary of the snapshot that the argument `at` names. */
  private def summary(session: SparkSession, call: Arguments, at: String): Seq[SummaryLine] = {
    val values = call.value("table").map("table" -> _) ++ call.value(at).map("at" -> _)
    val arguments = new Arguments(SummaryFunction, values.toMap)
    try SummaryFunction.rows(session, arguments).map(new SummaryLine(_))
    catch { case error: MetastoreException => throw error.withArgument("at", at) }
  }

  /** A row of `metastore.summary`, its fields by name. */
  private final class SummaryLine(row: InternalRow) {
    val columnName: String = text("column_name").get

    def text(field: String): Option[String] = {
      def asText = Option(Arguments.cast(value(field), StringType)).map(_.toString)
      averageTime(field).orElse(asText)
    }

    /** The standard deviation; 0 if unknown. */
    def deviation: Double = number("std").getOrElse(0)

    /** The average of a column of dates or times as one of them. */
    private def averageTime(field: String): Option[String] =
      if (field != "avg") None
      else for {
        dataType <- Times.get(columnType)
        average <- Option(value(field).value)
      } yield {
        val number = math.floor(average.asInstanceOf[Double])
        val literal =
          if (dataType == DateType) Literal(number.toInt, dataType)
          else Literal(number.toLong, dataType)
        Arguments.cast(literal, StringType).toString
      }

    /** The value as a number, where it is one: bounds are texts, of whatever type the column is. */
    def number(field: String): Option[Double] = {
      val literal = value(field)
      val isNumber =
        literal.dataType.isInstanceOf[NumericType] || IsNumber.pattern.matcher(columnType).matches
      if (!isNumber) None
      else Arguments.cast(literal, DoubleType) match {
        case number: Double if !number.isNaN && !number.isInfinite =>
          Some(number)
        case _ => None
      }
    }

    private def columnType: String = String.valueOf(Arguments.cast(value("column_type"), StringType))

    private def value(field: String): Literal = {
      val ordinal = SummaryFunction.schema.fieldIndex(field)
      val dataType = SummaryFunction.schema(ordinal).dataType
      Literal(row.get(ordinal, dataType), dataType)
    }
  }

  /** Measures of floating-point sums: another order of the same rows changes their last digits. */
  private val OfSums = Set("avg", "std", "avg_len")
  private val Noise = 1e-9 // share of such a measure that is no difference
  // Ordinals in a row.
  private val Before = 2
  private val After = 3
  private val Change = 4
  private val TableMeasures = Seq("count", "files")
  private val Times = Map[String, DataType](
    "date" -> DateType,
    "timestamp" -> TimestampType,
    "timestamp_ntz" -> TimestampNTZType)
  private val IsNumber = "tinyint|smallint|int|bigint|float|double|decimal\\(.*".r
}
