package org.metastore.spark.sql

import scala.util.{Success, Try}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, Cast, EqualNullSafe, EqualTo, GreaterThanOrEqual, LessThanOrEqual, Literal
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, FilterCompiler, PruningFilter}
import org.metastore.spark.reason.{BinaryText, MetastoreException, Optional}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.tables.{Leaf, TableFormats}

/**
 * `metastore.locate(table, column, value)`: one row for each data file that may have the value, by the
 * statistics.
 */
object LocateFunction extends TableFunction("locate") {
  private val MostForms = 1000
  private val Space = UTF8String.fromString(" ")

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val context = TableContext.open(session, call.text("table"))
    val current = context.table.current
    val snapshot = context.snapshotWithColumns(current)
    val leaf = context.leaf(session, call.text("column"), context.table.leaves(current))
    context.requireValues(leaf, snapshot)
    val value = call.value("value").fold(Literal(null, leaf.dataType))(exactValue(_, leaf))
    val (changed, files) =
      context.liveFiles(snapshot).partition(TableFormats.hasLogFiles(context.table.format) && !_.isWhole)
    // Log files may hold any value.
    val candidates = locate(context, leaf, value, files.toIndexedSeq) ++ changed.map(Located(_, None))
    for (Located(file, frequency) <- candidates.sortBy(_.file.path))
      yield ResultRow.row(file.path, frequency, frequency.isDefined && file.isWhole)
  }

  /** A file that may hold the value; `frequency` is None if unknown. */
  private final case class Located(file: LiveFile, frequency: Option[Long])

  private def locate(
      context: TableContext,
      leaf: Leaf,
      value: Literal,
      files: IndexedSeq[LiveFile]): Seq[Located] = {
    val forms = formsOf(value, leaf)
    val areFew = forms.size <= MostForms
    val filters = compile(leaf, forms, areFew)
    val statistics = context.planning(MetastoreConf().readTimeoutMillis)
    val summaries = statistics.forFiles(FileList.fromKeys(files.map(_.key)), filters.head.columnKeys)
    val counts = for ((filter, form) <- filters.zip(forms)) yield {
      val verdicts = filter.evaluate(summaries)
      val candidates = files.indices.filter(verdicts.isKept).toArray
      def unknown = Array.fill(candidates.length)(-1L)
      val rows =
        if (areFew) summaries.frequencies(leaf.key, leaf.dataType, form.value, candidates) else unknown
      candidates.zip(rows).toMap
    }
    for {
      file <- files.indices
      rows = sum(counts.flatMap(_.get(file)))
      if !rows.contains(0L)
    } yield Located(files(file), rows)
  }

  /** A filter for each form of the value; if they are many, one filter for their range. */
  private def compile(leaf: Leaf, forms: Seq[Literal], areFew: Boolean): Seq[PruningFilter] = {
    val attribute = AttributeReference(leaf.name, leaf.dataType)()
    val resolver: ColumnResolver = (_, _) => Some(leaf.key)
    def range = Seq(GreaterThanOrEqual(attribute, forms.head), LessThanOrEqual(attribute, forms.last))
    if (areFew) forms.map(form => FilterCompiler.compile(Seq(EqualNullSafe(attribute, form)), resolver))
    else Seq(FilterCompiler.compile(range, resolver))
  }

  /** The sum; None if one of the counts is unknown. */
  private def sum(counts: Seq[Long]): Option[Long] = Optional.when(counts.forall(_ >= 0))(counts.sum)

  /**
   * The forms of a value in files. Spark pads CHAR on both sides of a comparison; files hold it padded or
   * not.
   */
  private def formsOf(value: Literal, leaf: Leaf): Seq[Literal] = (value.value, leaf.charLength) match {
    case (text: UTF8String, Some(length)) =>
      val short = text.trimRight()
      val longest = math.max(length, text.numChars)
      (short.numChars to longest).map(size => Literal(short.rpad(size, Space), value.dataType))
    case _ => Seq(value)
  }

  /** The value in the column's type, exactly. A text such as `X'00FF'` is read as bytes. */
  private def exactValue(literal: Literal, leaf: Leaf): Literal = (literal.value, leaf.dataType) match {
    case (text: UTF8String, BinaryType) =>
      BinaryText.parse(text.toString).fold(castTo(literal, leaf))(Literal(_))
    case _ => castTo(literal, leaf)
  }

  private def castTo(literal: Literal, leaf: Leaf): Literal = {
    val zone = Some(SQLConf.get.sessionLocalTimeZone)
    val cast = Cast(literal, leaf.dataType, zone, ansiEnabled = true)
    val value = Try {
      require(cast.checkInputDataTypes().isSuccess)
      Literal(cast.eval(), leaf.dataType)
    }
    value match {
      case Success(exact) if literal.dataType == StringType || isSame(exact, literal, zone) => exact
      case _ => throw MetastoreException.invalidArgument(
          "value",
          s"${Arguments.toText(literal)} is not of the type ${leaf.dataType.simpleString}")
    }
  }

  private def isSame(value: Literal, literal: Literal, zone: Option[String]): Boolean = {
    val back = Cast(value, literal.dataType, zone, ansiEnabled = true)
    back.checkInputDataTypes().isSuccess && Try(EqualTo(back, literal).eval()).toOption.contains(true)
  }
}
