package org.metastore.spark.pruning

import java.net.{URLDecoder, URLEncoder}
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.{Ascending, NullsFirst, SortOrder}
import org.apache.spark.sql.types.DataType

/** The number of matching rows that a query needs of a scan: any rows, or the first ones in an order. */
private[spark] final case class WantedRows(limit: Long, order: Option[RowOrder] = None) {

  /** Writes a text without colons, equal for equal rows. */
  def text: String = (limit.toString +: order.toSeq.flatMap { by =>
    Seq(
      by.isAscending.toString,
      by.nullsFirst.toString,
      by.column.key,
      by.column.name,
      by.column.dataType.json)
  }).map(URLEncoder.encode(_, UTF_8.name)).mkString(",")
}

private[spark] object WantedRows {

  /** Parses a `text`. */
  def parse(text: String): WantedRows = text.split(",").map(URLDecoder.decode(_, UTF_8.name)) match {
    case Array(limit, isAscending, nullsFirst, key, name, dataType) =>
      val column = ColumnReference(key, name, DataType.fromJson(dataType))
      WantedRows(limit.toLong, Some(RowOrder(column, isAscending.toBoolean, nullsFirst.toBoolean)))
    case Array(limit) =>
      WantedRows(limit.toLong)
    case _ =>
      throw new IllegalArgumentException(text)
  }
}

/** The order of rows by the first key of a sort; more keys may decide between equal rows. */
private[spark] final case class RowOrder(column: ColumnReference, isAscending: Boolean, nullsFirst: Boolean) {
  override def toString: String =
    s"${column.name} ${if (isAscending) "ASC" else "DESC"} NULLS ${if (nullsFirst) "FIRST" else "LAST"}"
}

private[spark] object RowOrder {

  /** The order by a sort's first key; None if it is not a column with bounds. */
  def fromSort(first: SortOrder, resolver: ColumnResolver): Option[RowOrder] =
    new ColumnLookup(resolver).findBounded(first.child)
      .map(RowOrder(_, first.direction == Ascending, first.nullOrdering == NullsFirst))
}
