package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.metastore.spark.estimates.RelationColumns
import org.metastore.spark.statistics.objects.TableIdentity

/** Prepares the scans of one kind of relation: drops files, and gives the optimizer the numbers of the others. */
private[scan] trait RelationAdapter {

  /** The plan in a leaf's place, by what stands above it; None: the leaf is not of this kind, or prepared already. */
  def prepare(relation: LogicalPlan, above: ScanContext, planner: ScanPlanner): Option[LogicalPlan]

  /**
   * The answer of an aggregate of a relation's rows by the statistics; None where they do not tell it, or the relation is not of
   * this kind. May throw.
   */
  def answer(relation: LogicalPlan, request: AggregateRequest, planner: ScanPlanner): Option[MeasuredScan]

  /** The table of a relation, to begin to look for its statistics; None where it is not of this kind. May throw. */
  def table(relation: LogicalPlan): Option[TableIdentity]

  /** A relation's columns in the statistics; None where it is not of this kind, or never analyzed. May throw. */
  def columns(relation: LogicalPlan, planner: ScanPlanner): Option[RelationColumns]
}
