package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.metastore.spark.estimates.RelationColumns
import org.metastore.spark.statistics.objects.TableIdentity

/** Says which table a relation is, drops files from its scan and hands the optimizer the numbers of those that stay. */
private[scan] trait RelationAdapter {

  /** What is planned in a leaf's place, by what stands above it. None: not of this kind, or prepared. */
  def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan]

  /**
   * What an aggregate of a relation's rows is, where it follows from the statistics; None where it does not, or the relation is
   * not of this kind. May throw.
   */
  def answer(relation: LogicalPlan, asked: AggregateRequest, planner: ScanPlanner): Option[MeasuredScan]

  /** The table of a relation whose statistics are going to be asked for; None where it is not of this kind. May throw. */
  def table(relation: LogicalPlan): Option[TableIdentity]

  /** What the statistics know of a relation's columns; None where it is not of this kind, or never analyzed. May throw. */
  def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns]
}
