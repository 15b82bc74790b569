package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.metastore.spark.cardinality.RelationColumns

/**
 * One kind of relation: says which table it is, which data files its scan reads, drops files from it and hands the
 * optimizer the numbers of the files that stay.
 */
private[adapter] trait RelationAdapter {

  /**
   * Prepares a relation before join reordering.
   *
   * @param relation  a leaf of the plan
   * @param conjuncts the filters directly above it: every row that the query uses satisfies them
   * @return the relation that is planned instead; None where it is not of this kind, or already prepared
   */
  def prepare(relation: LogicalPlan, conjuncts: Seq[Expression], planner: ScanPlanner): Option[LogicalPlan]

  /** The table of a relation whose statistics are going to be asked for; None where it is not of this kind. May throw. */
  def table(relation: LogicalPlan): Option[TableId]

  /** What the statistics know of a relation's columns; None where it is not of this kind, or never analyzed. May throw. */
  def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns]
}
