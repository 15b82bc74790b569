package org.metastore.spark.statistics.columns

import org.apache.spark.sql.types._
import org.metastore.spark.statistics.objects.{ColumnEntry, Encoding}

/** The use of statistics written under one type for a column that a query reads as another. */
sealed trait TypePromotion

object TypePromotion {

  /** Bounds and counts. */
  object Full extends TypePromotion

  /** Only counts are usable: bounds of such a type decide nothing. */
  object Counts extends TypePromotion

  /** Nothing. */
  object Nothing extends TypePromotion

  private val DecimalType18 = 18

  /** The use of a column's statistics under a type. */
  def fromEntry(entry: ColumnEntry, dataType: DataType): TypePromotion = {
    val written = entry.dataType
    if (entry.collation.exists(_ != "UTF8_BINARY") && dataType == StringType) Nothing
    else if (entry.casts && dataType == DoubleType && written == "float") Nothing
    else if (encoding(dataType).exists(entry.encoding.contains) && sameOrPromoted(written, dataType)) Full
    else if (written == dataType.catalogString || isChar(written, dataType)) Counts
    else Nothing
  }

  /** Whether bounds of the type may decide comparisons; otherwise only its counts are usable. */
  def hasBounds(dataType: DataType): Boolean = encoding(dataType).isDefined

  private val Encodings: Map[DataType, Encoding] = Map(
    BooleanType -> Encoding.LongValues,
    ByteType -> Encoding.LongValues,
    ShortType -> Encoding.LongValues,
    IntegerType -> Encoding.LongValues,
    LongType -> Encoding.LongValues,
    DateType -> Encoding.LongValues,
    TimestampType -> Encoding.LongValues,
    TimestampNTZType -> Encoding.LongValues,
    FloatType -> Encoding.DoubleValues,
    DoubleType -> Encoding.DoubleValues,
    BinaryType -> Encoding.BinaryValues,
    StringType -> Encoding.BinaryValues // equal only to UTF8_BINARY without a length
  )

  /** Whether a collation orders the texts of a type, by rules that are not ours. */
  def isCollated(dataType: DataType): Boolean = dataType.isInstanceOf[StringType] && dataType != StringType

  /** The encoding whose bounds agree with Spark's order of the type; None if bounds decide nothing. */
  def encoding(dataType: DataType): Option[Encoding] = dataType match {
    case d: DecimalType =>
      Some(if (d.precision <= DecimalType18) Encoding.LongValues else Encoding.BinaryValues)
    case _ =>
      Encodings.get(dataType)
  }

  /** The types under which a column may have been written that is read as another, beside that one. */
  private val Promoted: Map[DataType, Set[String]] = Map(
    ShortType -> Set("tinyint"),
    IntegerType -> Set("smallint", "tinyint"),
    LongType -> Set("int", "smallint", "tinyint"),
    DoubleType -> Set("float"))

  private def sameOrPromoted(written: String, dataType: DataType): Boolean = dataType match {
    case _ if written == dataType.catalogString => true
    case StringType =>
      written.startsWith("varchar(")
    case d: DecimalType =>
      decimal(written).exists { case (precision, scale) => scale == d.scale && precision <= d.precision }
    case _ =>
      Promoted.get(dataType).exists(_.contains(written))
  }

  private val Decimal = "decimal\\((\\d{1,2}),(\\d{1,2})\\)".r

  private def decimal(written: String): Option[(Int, Int)] =
    written match {
      case Decimal(precision, scale) =>
        Some((precision.toInt, scale.toInt))
      case _ => None
    }

  private def isChar(written: String, dataType: DataType): Boolean =
    dataType == StringType && written.startsWith("char(")
}
