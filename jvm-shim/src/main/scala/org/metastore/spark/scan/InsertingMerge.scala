package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, Join, LogicalPlan}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

import org.metastore.spark.conf.MetastoreConf

/**
 * A MERGE that only inserts. Spark appends the source rows without a match. Their query reads the target as
 * any other table.
 */
private[scan] final class InsertingMerge private (append: AppendData, target: DataSourceV2Relation) {
  import InsertingMerge.isAnti

  /** The allowed ways to find the files with a match. */
  def pruning(settings: MetastoreConf): RowLevelPruning = PlanScope.rowLevelPruning(target.table, settings)

  /** Whether a scan reads the target. */
  def reads(scan: LogicalPlan): Boolean = scan match {
    case prepared: DataSourceV2ScanRelation => reads(prepared.relation)
    case _ => false
  }

  private def reads(relation: DataSourceV2Relation): Boolean =
    target.identifier.isDefined && target.identifier == relation.identifier &&
      target.catalog == relation.catalog

  /** Replaces the relations in which the append finds matches; `replaced` also gets that side's plan. */
  def replaceReads(replaced: (DataSourceV2Relation, LogicalPlan) => LogicalPlan): LogicalPlan =
    append.withNewQuery(append.query.transform {
      case join: Join if isAnti(join) =>
        val right = join.right.transform {
          case relation: DataSourceV2Relation if reads(relation) => replaced(relation, join.right)
        }
        WithTags(join.copy(right = right), join)
    })
}

private[scan] object InsertingMerge {

  /** The MERGE behind a plan, or None if the plan does not append rows without a match. */
  def fromPlan(plan: LogicalPlan): Option[InsertingMerge] = plan match {
    case append: AppendData if append.query.exists(isAnti) => fromAppend(append)
    case _ => None
  }

  private def fromAppend(append: AppendData): Option[InsertingMerge] =
    append.table match {
      case target: DataSourceV2Relation =>
        Some(new InsertingMerge(append, target))
      case _ => None
    }

  private def isAnti(plan: LogicalPlan): Boolean =
    plan match {
      case join: Join => join.joinType == LeftAnti
      case _ => false
    }
}
