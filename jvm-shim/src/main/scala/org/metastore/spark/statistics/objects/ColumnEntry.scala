package org.metastore.spark.statistics.objects

import java.util.Locale

/** The encoding of a column's values: which of the three typed columns holds its bounds. */
sealed abstract class Encoding(val name: String)

object Encoding {
  case object LongValues extends Encoding("long")
  case object DoubleValues extends Encoding("double")
  case object BinaryValues extends Encoding("binary")
}

/**
 * A leaf column as it was when its statistics were written.
 *
 * @param encoding `None`: only counts are stored
 * @param collation `None`: UTF8_BINARY
 */
final case class ColumnEntry(
    key: String,
    path: Seq[String],
    dataType: String,
    encoding: Option[Encoding],
    collation: Option[String],
    casts: Boolean = false) {

  /** Whether it is an expression over columns, whose SQL is its path. */
  def isExpression: Boolean = key.startsWith(ColumnEntry.ExpressionPrefix)
}

object ColumnEntry {

  /** The beginning of the keys of expressions, as no key of a column begins. */
  val ExpressionPrefix = "expression:"

  /** A column's path in lower case, by which paths are compared where case does not matter. */
  def lowerCase(path: Seq[String]): Seq[String] = path.map(_.toLowerCase(Locale.ROOT))

  /** The SQL of the expressions among columns, by their keys. */
  private[objects] def expressionsAmong(columns: Iterator[ColumnEntry]): Map[String, String] = {
    val expressions = for (column <- columns if column.isExpression) yield column.key -> column.path.head
    expressions.toMap
  }
}
