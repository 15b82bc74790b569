package org.metastore.spark.store

import org.apache.spark.sql.types._

/** What statistics written under one type can say about a column that the query sees as another. */
private[store] sealed trait TypePromotion

private[store] object TypePromotion {

  /** Bounds and counts. */
  case object Full extends TypePromotion

  /** Counts only: bounds of such a type say nothing. */
  case object Counts extends TypePromotion

  /** Nothing. */
  case object Nothing extends TypePromotion

  private val DecimalType18 = 18

  def of(entry: ColumnEntry, dataType: DataType): TypePromotion = {
    val written = entry.dataType
    if (entry.collation.exists(_ != "UTF8_BINARY") && dataType == StringType) Nothing
    else if (entry.casts && dataType == DoubleType && written == "float") Nothing
    else if (encoding(dataType).exists(entry.encoding.contains) && sameOrPromoted(written, dataType)) Full
    else if (written == dataType.catalogString || isChar(written, dataType)) Counts
    else Nothing
  }

  /** The encoding whose bounds agree with Spark's order of the type; none where bounds say nothing. */
  def encoding(dataType: DataType): Option[Encoding] = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType =>
      Some(Encoding.LongValues)
    case d: DecimalType => Some(if (d.precision <= DecimalType18) Encoding.LongValues else Encoding.BinaryValues)
    case FloatType | DoubleType => Some(Encoding.DoubleValues)
    case BinaryType => Some(Encoding.BinaryValues)
    case StringType => Some(Encoding.BinaryValues) // equal only to UTF8_BINARY without a length
    case _ => None
  }

  private def sameOrPromoted(written: String, dataType: DataType): Boolean = dataType match {
    case ShortType => Set("smallint", "tinyint")(written)
    case IntegerType => Set("int", "smallint", "tinyint")(written)
    case LongType => Set("bigint", "int", "smallint", "tinyint")(written)
    case DoubleType => Set("double", "float")(written)
    case StringType => written == "string" || written.startsWith("varchar(")
    case d: DecimalType => decimal(written).exists { case (precision, scale) => scale == d.scale && precision <= d.precision }
    case other => written == other.catalogString
  }

  private val Decimal = "decimal\\((\\d{1,2}),(\\d{1,2})\\)".r

  private def decimal(written: String): Option[(Int, Int)] = written match {
    case Decimal(precision, scale) => Some((precision.toInt, scale.toInt))
    case _ => None
  }

  private def isChar(written: String, dataType: DataType): Boolean = dataType == StringType && written.startsWith("char(")
}
