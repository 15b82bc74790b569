package org.metastore.spark.sql

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, Cast, EqualNullSafe, EqualTo, Expression, GreaterThanOrEqual, LessThanOrEqual, Literal
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.{ColumnResolver, FilterCompiler}
import org.metastore.spark.reason.{BinaryText, MetastoreException}
import org.metastore.spark.statistics.columns.FileList
import org.metastore.spark.tables.{Leaf, TableFormats}

/** `metastore.locate(table, column, value)`: one row a data file that may hold the value, as far as statistics tell. */
object LocateFunction extends TableFunction("locate") {
  private val MostForms = 1000
  private val Space = UTF8String.fromString(" ")

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.open(session, call.text("table"))
    val current = analyzed.table.current
    val snapshot = analyzed.snapshotWithColumns(current)
    val leaf = analyzed.leaf(session, call.text("column"), analyzed.table.leaves(current))
    if (snapshot.columns.exists(column => column.key == leaf.key && column.encoding.isEmpty))
      throw MetastoreException.invalidArgument(
        "column",
        s"of ${leaf.name}, ${leaf.dataType.simpleString}, only counts are kept")
    val value = call.value("value").fold(Literal(null, leaf.dataType))(valueOf(_, leaf))
    val (changed, files) =
      analyzed.liveFiles(snapshot).partition(TableFormats.hasLogFiles(analyzed.table.format) && !_.isWhole)
    val found = located(analyzed, leaf, value, files.toIndexedSeq)
    // Log files may hold any value.
    val candidates = found ++ changed.map(_ -> None)
    for ((file, frequency) <- candidates.sortBy(_._1.path))
      yield ResultRow.row(file.path, frequency, frequency.isDefined && file.isWhole)
  }

  private def located(
      analyzed: TableContext,
      leaf: Leaf,
      value: Literal,
      files: IndexedSeq[LiveFile]): Seq[(LiveFile, Option[Long])] = {
    val attribute = AttributeReference(leaf.name, leaf.dataType)()
    val resolver: ColumnResolver = (_, _) => Some(leaf.key)
    val forms = leaf.charLength.filter(_ => value.value != null).fold(Seq(value))(storedForms(value, _))
    val areFew = forms.size <= MostForms
    val conditions: Seq[Seq[Expression]] =
      if (areFew) forms.map(form => Seq(EqualNullSafe(attribute, form)))
      else Seq(Seq(GreaterThanOrEqual(attribute, forms.head), LessThanOrEqual(attribute, forms.last)))
    val filters = conditions.map(FilterCompiler.compile(_, resolver))
    val statistics = analyzed.planning(MetastoreConf().readTimeoutMillis)
    val known = statistics.forFiles(FileList.fromKeys(files.map(_.key)), filters.head.columnKeys)
    val counts = for ((filter, form) <- filters.zip(forms)) yield {
      val verdicts = filter.evaluate(known)
      val kept = files.indices.filter(verdicts.isKept).toArray
      def unknown = Array.fill(kept.length)(-1L)
      val rows = if (areFew) known.frequencies(leaf.key, leaf.dataType, form.value, kept) else unknown
      kept.zip(rows).toMap
    }
    for {
      file <- files.indices
      rows = sum(counts.flatMap(_.get(file)))
      if !rows.contains(0L)
    } yield files(file) -> rows
  }

  /** None where one is not known. */
  private def sum(counts: Seq[Long]): Option[Long] = if (counts.exists(_ < 0)) None else Some(counts.sum)

  /** Values of CHAR that Spark takes for equal to one: it pads both sides, and files hold them padded or not. */
  private def storedForms(value: Literal, length: Int): Seq[Literal] = {
    val text = value.value.asInstanceOf[UTF8String]
    val short = text.trimRight()
    (short.numChars to math.max(length, text.numChars)).map(size =>
      Literal(short.rpad(size, Space), value.dataType))
  }

  /** The value in the column's type, which has to hold it exactly; a text may stand for bytes as `X'00FF'`. */
  private def valueOf(asked: Literal, leaf: Leaf): Literal = (asked.value, leaf.dataType) match {
    case (text: UTF8String, BinaryType) =>
      BinaryText.parse(text.toString).fold(castOf(asked, leaf))(Literal(_))
    case _ => castOf(asked, leaf)
  }

  private def castOf(asked: Literal, leaf: Leaf): Literal = {
    val zone = Some(SQLConf.get.sessionLocalTimeZone)
    val cast = Cast(asked, leaf.dataType, zone, ansiEnabled = true)
    val value = Try {
      require(cast.checkInputDataTypes().isSuccess)
      Literal(cast.eval(), leaf.dataType)
    }.toOption
    value.filter(value => asked.dataType == StringType || isSame(value, asked, zone)).getOrElse {
      throw MetastoreException.invalidArgument(
        "value",
        s"${Arguments.toText(asked)} is not of the type ${leaf.dataType.simpleString}")
    }
  }

  private def isSame(value: Literal, asked: Literal, zone: Option[String]): Boolean = {
    val back = Cast(value, asked.dataType, zone, ansiEnabled = true)
    back.checkInputDataTypes().isSuccess && Try(EqualTo(back, asked).eval()).toOption.contains(true)
  }
}
