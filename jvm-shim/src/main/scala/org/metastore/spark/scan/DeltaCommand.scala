package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.tables.{DeltaTable, FileRelation, Reflection}

/**
 * An UPDATE, DELETE or MERGE of a Delta table, which Delta runs as several queries.
 *
 * The first query finds the files with rows to change, and aggregates these rows. It may skip files without
 * such a row. Later queries read the files that the command removes from the table: their scans are not
 * changed.
 */
private[scan] object DeltaCommand {
  private val CommandIndex = "org.apache.spark.sql.delta.files.TahoeBatchFileIndex"
  private val RowCounter = "org.apache.spark.sql.delta.metric.IncrementMetric"
  private val actions = Set("delete", "update", "batch") // "batch" is MERGE's
  private val ChangeType = "_change_type" // rows of a change feed are aggregated, too
  private val Key = "metastore.command"
  private val Transaction = "org.apache.spark.sql.delta.OptimisticTransaction"

  /** Marks the relations in which a command finds its files. */
  def mark(plan: LogicalPlan, session: SparkSession): LogicalPlan =
    if (!isCommandQuery(plan) || writesChanges(plan)) plan
    else plan.transform {
      case aggregate: Aggregate => aggregate.mapChildren(markRelations(_, session))
      // A MERGE that only inserts reads the source rows without a match.
      case join: Join if join.joinType == LeftAnti =>
        WithTags(join.copy(right = markRelations(join.right, session)), join)
    }

  private def markRelations(plan: LogicalPlan, session: SparkSession): LogicalPlan = plan.transform {
    case relation: LogicalRelation if isCommandTarget(relation) =>
      ScanPlanner.recover(relation.nodeName, relation: LogicalPlan)(markRelation(relation, session))
  }

  /** Whether Delta runs a command by this query. */
  def isCommandQuery(plan: LogicalPlan): Boolean = plan.exists(isCommandTarget)

  /** The allowed ways to find a command's files in this relation, or None if the relation is not marked. */
  def markOf(relation: HadoopFsRelation): Option[RowLevelPruning] =
    relation.options.get(Key).flatMap(RowLevelPruning.named)

  /** Whether an expression returns its child, and counts rows. */
  def countsRows(expression: Expression): Boolean = expression.getClass.getName == RowCounter

  /** Whether the query is part of a write to a Delta table: MERGE, INSERT .. SELECT, CTAS. */
  def isInsideWrite(relation: HadoopFsRelation): Boolean = {
    val loader = relation.location.getClass.getClassLoader
    val companion = Reflection.load(s"$Transaction$$", loader).getField("MODULE$").get(null)
    Reflection.call[Option[_]](companion, "getActive").isDefined
  }

  private def isCommandTarget(plan: LogicalPlan): Boolean = plan match {
    case FileRelation(files) =>
      files.location.getClass.getName == CommandIndex &&
      actions(Reflection.call[String](files.location, "actionType")) && isInsideWrite(files)
    case _ => false
  }

  private def writesChanges(plan: LogicalPlan): Boolean = plan.exists(_.output.exists(_.name == ChangeType))

  private def markRelation(relation: LogicalRelation, session: SparkSession): LogicalPlan = relation match {
    case FileRelation(files) if markOf(files).isEmpty =>
      val allowed =
        RowLevelPruning.allowed(
          MetastoreConf.fromSession(session),
          DeltaTable.fromIndex(files.location).properties)
      if (!allowed.byConditions) relation
      else
        WithTags(
          relation.copy(relation =
            files.copy(options = files.options + (Key -> allowed.name))(files.sparkSession)),
          relation)
    case other => other
  }
}
