package org.metastore.spark.sql

import java.io.ByteArrayInputStream
import java.time.Instant

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.ipc.ArrowStreamReader

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, GenericInternalRow, Literal}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, DateTimeUtils, GenericArrayData}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, CharType, DataType, Decimal, StringType, VarcharType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{BinaryText, Indexed}
import org.metastore.spark.statistics.columns.CatalystValue
import org.metastore.spark.statistics.objects.SummaryRow

/** Builds rows from Scala's texts, options and numbers. */
object ResultRow {
  private[sql] val Digits = 38
  private val Most = BigInt(10).pow(Digits) - 1

  /** A row of values; `None` is null, texts become Spark's. */
  def row(values: Any*): InternalRow = new GenericInternalRow(values.map(internal).toArray[Any])

  /** A row of fields by name; missing ones are null. */
  def named(columns: Seq[String], fields: String => Option[Any]): InternalRow = row(columns.map(fields): _*)

  /** A number as DECIMAL(38,0); a larger one becomes the largest of this type. */
  def decimalOf(number: BigInt): Decimal = Decimal(BigDecimal(number.min(Most)), Digits, 0)

  /** A map of texts. */
  def texts(entries: Seq[(String, String)]): ArrayBasedMapData = mapOf(entries)

  /** A map from texts to counts. */
  def counts(entries: Seq[(String, Long)]): ArrayBasedMapData = mapOf(entries)

  private def mapOf(entries: Seq[(String, Any)]): ArrayBasedMapData = {
    val (keys, values) = entries.unzip
    ArrayBasedMapData(keys.map(internal).toArray[Any], values.map(internal).toArray[Any])
  }

  /** A list of texts. */
  def list(texts: Seq[String]): GenericArrayData =
    new GenericArrayData(texts.map(UTF8String.fromString).toArray[Any])

  private def internal(value: Any): Any = value match {
    case None | null => null
    case Some(inner) => internal(inner)
    case text: String => UTF8String.fromString(text)
    case other => other
  }
}

/** Renders values of a column as `CAST(value AS STRING)` does in this session, binary ones as `X'00FF'`. */
final class ValueText private (written: Option[DataType], target: DataType) {
  private val zone = Some(SQLConf.get.sessionLocalTimeZone)
  private val ansi = SQLConf.get.ansiEnabled // decides whether small decimals are written with an exponent
  private val isCut = target == BinaryType || target.isInstanceOf[StringType]

  /** A stored value; null if it is missing. */
  def value(value: Option[Any]): UTF8String = value.flatMap(v => written.map(asText(v, _))).orNull

  /** A bound; a string that was cut ends in an ellipsis. */
  def bound(bound: Option[Any], exact: Boolean): UTF8String = value(bound) match {
    case text: UTF8String if isCut && !exact => UTF8String.fromString(s"$text\u2026")
    case text => text
  }

  /**
   * An edge of a bin or a quantile: a string that may be the beginning of longer ones ends in an ellipsis.
   */
  def edge(edge: Any, column: SummaryRow): UTF8String = bound(Some(edge), isWhole(edge, column))

  /** Whether an edge is certain not to be the beginning of longer strings. */
  def isWhole(edge: Any, column: SummaryRow): Boolean = edge match {
    case cut: Array[Byte] => !isCut || cut.length < ValueText.CutBytes || (column.loExact && column.hiExact)
    case _ => true
  }

  private def asText(value: Any, from: DataType): UTF8String = {
    val literal = Literal(CatalystValue.catalyst(value, from), from)
    val typed = if (from == target) literal else Cast(literal, target, zone, ansiEnabled = false)
    if (target == BinaryType) UTF8String.fromString(BinaryText.render(typed.eval().asInstanceOf[Array[Byte]]))
    else Cast(typed, StringType, zone, ansi).eval().asInstanceOf[UTF8String]
  }
}

object ValueText {
  private val CutBytes = Contract.limit("cut_bytes")

  /** Renders values that were written under a type, for a column that may have another type by now. */
  def fromTypes(written: String, target: DataType): ValueText = {
    val writtenType =
      if (written == target.simpleString) Some(target)
      else Try(CatalystSqlParser.parseDataType(written)).toOption
    new ValueText(writtenType.map(plain), plain(target))
  }

  /** The type without length limit and collation: bounds of texts are stored as bytes. */
  private def plain(dataType: DataType): DataType = dataType match {
    case _: StringType | _: CharType | _: VarcharType => StringType
    case other => other
  }

  /** A time of the manifest as a TIMESTAMP. */
  def timestamp(iso: String): Long = DateTimeUtils.instantToMicros(Instant.parse(iso))

  def text(text: String): UTF8String = UTF8String.fromString(text)
}

/** The fields of `table-summary` (docs/format.md) that the data source adds to the texts of a view. */
object SummaryColumns {

  /** The value of a field as Catalyst's; null if it is missing. */
  def value(row: SummaryRow, field: String): Any = field match {
    case "lo_exact" => row.loExact
    case "hi_exact" => row.hiExact
    case _ => row.get[Any](field).map(catalyst).orNull
  }

  private def catalyst(value: Any): Any = value match {
    case text: String => UTF8String.fromString(text)
    case number: java.math.BigDecimal => Decimal(number, ResultRow.Digits, 0)
    case list: Seq[_] => new GenericArrayData(list.map(catalyst).toArray[Any])
    case map: Map[_, _] =>
      val (keys, values) = map.toSeq.unzip
      ArrayBasedMapData(keys.map(catalyst).toArray[Any], values.map(catalyst).toArray[Any])
    case plain => plain
  }
}

/** User-defined statistics as SQL shows them: a map from name to value, as JSON. docs/format.md: `extra`. */
object UserDefinedStatistics {
  private val MaxBytes = Contract.limit("extra_bytes")
  private val MaxMemory = Contract.limit("extra_decoded_bytes")
  private val json = new ObjectMapper

  /** The map as Catalyst's, without damaged values; null if it is empty. */
  def texts(extra: Map[String, Array[Byte]]): Any = {
    val readable = for {
      (name, bytes) <- extra.toSeq.sortBy(_._1)
      json <- text(bytes)
    } yield name -> json
    if (readable.isEmpty) null else ResultRow.texts(readable)
  }

  private def text(bytes: Array[Byte]): Option[String] =
    if (bytes.length > MaxBytes) None
    else Try(json.writeValueAsString(plain(value(bytes)))).toOption

  private def value(bytes: Array[Byte]): Any = {
    val allocator = new RootAllocator(MaxMemory)
    try {
      val reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator)
      try {
        require(reader.loadNextBatch() && reader.getVectorSchemaRoot.getRowCount == 1)
        reader.getVectorSchemaRoot.getVector(0).getObject(0)
      } finally reader.close()
    } finally allocator.close()
  }

  /**
   * A value that Jackson writes as JSON: numbers, booleans, lists and maps as they are, other values as text.
   */
  private def plain(value: Any): Any = value match {
    case null | _: Number | _: java.lang.Boolean => value
    case map: java.util.Map[_, _] =>
      Indexed.entries(map.asScala) { case (key, inner) => String.valueOf(key) -> plain(inner) }.asJava
    case list: java.util.Collection[_] => list.asScala.map(plain).toSeq.asJava
    case other => String.valueOf(other)
  }
}
