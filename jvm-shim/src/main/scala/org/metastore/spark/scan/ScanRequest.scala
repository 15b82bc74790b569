package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.{ColumnResolver, WantedRows}

/**
 * The rows that a scan has to return.
 *
 * @param conjuncts filter of the rows
 * @param wanted    the rows that the query needs; None: all rows
 * @param isJoined  whether the keys of a join choose among the remaining files when the query runs
 */
private[scan] final case class ScanRequest(
    conjuncts: Seq[Expression],
    wanted: Option[WantedRows] = None,
    isJoined: Boolean = false) {

  /** The key and type of the column that orders the rows. */
  def orderColumn: Option[(String, DataType)] =
    for (rows <- wanted; order <- rows.order) yield order.column.key -> order.column.dataType
}

/**
 * A scan whose rows are estimated.
 *
 * @param isTaken     whether the format alone evaluates a conjunct: no filter above the scan repeats it
 * @param isImmediate whether the estimate is always needed, as soon as the files are chosen
 */
private[scan] final case class EstimateRequest(
    output: Seq[Attribute],
    resolver: ColumnResolver,
    lineage: () => Iterator[String] = () => Iterator.empty,
    isTaken: Expression => Boolean = _ => false,
    isImmediate: Boolean = false)
