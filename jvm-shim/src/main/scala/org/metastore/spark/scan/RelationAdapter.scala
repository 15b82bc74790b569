package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.metastore.spark.estimates.RelationColumns
import org.metastore.spark.statistics.objects.TableIdentity

/** Prepares the scans of a kind of relation: drops files, and gives the optimizer the others' numbers. */
private[scan] trait RelationAdapter {

  /** The plan that replaces a leaf; None if the leaf is not of this kind, or is prepared already. */
  def prepare(relation: LogicalPlan, context: ScanContext, planner: ScanPlanner): Option[LogicalPlan]

  /**
   * The statistics' answer to an aggregate over a relation; None if they cannot answer it, or the relation is
   * not of this kind. May throw.
   */
  def answer(relation: LogicalPlan, request: AggregateRequest, planner: ScanPlanner): Option[MeasuredScan]

  /** The table of a relation, to begin its look-up; None if it is not of this kind. May throw. */
  def table(relation: LogicalPlan): Option[TableIdentity]

  /** A relation's columns in the statistics; None if it is not of this kind, or not analyzed. May throw. */
  def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns]
}
