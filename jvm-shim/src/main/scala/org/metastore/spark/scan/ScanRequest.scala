package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{ColumnResolver, WantedRows}

/**
 * The rows that a scan has to return.
 *
 * @param conjuncts filter of the rows
 * @param wanted    the rows that are enough; None: all are wanted
 * @param isJoined  whether the keys of a join choose among the files that are left, when the query runs
 */
private[scan] final case class ScanRequest(
    conjuncts: Seq[Expression],
    wanted: Option[WantedRows] = None,
    isJoined: Boolean = false) {

  /** Key and type of the column by which the wanted rows are ordered. */
  def orderColumn: Option[(String, DataType)] =
    for (rows <- wanted; order <- rows.order) yield order.column.key -> order.column.dataType
}

/**
 * A scan whose rows are estimated.
 *
 * @param isTaken     whether a conjunct stands in no filter above the scan
 * @param isImmediate whether the numbers are asked for in any case, as soon as the files are chosen
 */
private[scan] final case class EstimateRequest(
    output: Seq[Attribute],
    resolver: ColumnResolver,
    lineage: () => Iterator[String] = () => Iterator.empty,
    isTaken: Expression => Boolean = _ => false,
    isImmediate: Boolean = false)
