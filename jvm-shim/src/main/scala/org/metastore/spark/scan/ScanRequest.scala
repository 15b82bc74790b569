package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}

import org.metastore.spark.pruning.{ColumnResolver, WantedRows}

/**
 * Which rows a scan is to give.
 *
 * @param conjuncts they satisfy them
 * @param wanted    so many of them are enough; None: all
 * @param isJoined  when the query runs, the keys of a join choose among the files that are left
 */
private[scan] final case class ScanRequest(
    conjuncts: Seq[Expression],
    wanted: Option[WantedRows] = None,
    isJoined: Boolean = false)

/** A scan whose rows are estimated; conjuncts that are `taken` stand in no filter above it. */
private[scan] final case class EstimateRequest(
    output: Seq[Attribute],
    resolver: ColumnResolver,
    lineage: () => Iterator[String] = () => Iterator.empty,
    isTaken: Expression => Boolean = _ => false)
