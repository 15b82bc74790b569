package org.metastore.spark.sql

import java.time.Instant

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{Cast, Literal}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, CharType, DataType, StringType, VarcharType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.store.{CatalystValue, SummaryRow}

/** Values of columns as text, exactly as `CAST(value AS STRING)` gives it in this session. */
final class ValueText private (written: Option[DataType], shown: DataType) {
  private val zone = Some(SQLConf.get.sessionLocalTimeZone)
  private val ansi = SQLConf.get.ansiEnabled // decides whether small decimals are written with an exponent
  private val isCut = shown == BinaryType || shown.isInstanceOf[StringType]

  /** A value as stored; null where there is none. */
  def value(value: Option[Any]): UTF8String = value.flatMap(v => written.map(asText(v, _))).orNull

  /** A bound: that of a string which was cut ends in an ellipsis. */
  def bound(bound: Option[Any], exact: Boolean): UTF8String = value(bound) match {
    case text: UTF8String if isCut && !exact => UTF8String.fromString(s"$text\u2026")
    case text => text
  }

  /** An edge of a bin or a quantile: a string that may be the beginning of longer ones ends in an ellipsis. */
  def edge(edge: Any, column: SummaryRow): UTF8String = bound(Some(edge), edge match {
    case cut: Array[Byte] => cut.length < ValueText.CutBytes || (column.loExact && column.hiExact)
    case _ => true
  })

  private def asText(value: Any, from: DataType): UTF8String = {
    val literal = Literal(CatalystValue.catalyst(value, from), from)
    val typed = if (from == shown) literal else Cast(literal, shown, zone, ansiEnabled = false)
    Cast(typed, StringType, zone, ansi).eval().asInstanceOf[UTF8String]
  }
}

object ValueText {
  private val CutBytes = 64

  /**
   * Renders values that were written under one type for a column that may have another one by now.
   *
   * @param written Spark's `simpleString`; a type that this Spark does not know is not rendered
   */
  def of(written: String, shown: DataType): ValueText = {
    val known = if (written == shown.simpleString) Some(shown) else Try(CatalystSqlParser.parseDataType(written)).toOption
    new ValueText(known.map(plain), plain(shown))
  }

  /** Bounds of texts are kept by bytes, whatever their length limit or collation. */
  private def plain(dataType: DataType): DataType = dataType match {
    case _: StringType | _: CharType | _: VarcharType => StringType
    case other => other
  }

  /** A time of the manifest as a TIMESTAMP. */
  def timestamp(iso: String): Long = DateTimeUtils.instantToMicros(Instant.parse(iso))

  def text(text: String): UTF8String = UTF8String.fromString(text)
}
