package org.metastore.spark.tables

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Checks that the session's user may see every value of the tables that a query reads. */
private[spark] object QueryPermission {

  /**
   * Checks every table that an analyzed query reads, by its name if it has one: a policy that rewrote the
   * query has the bare table below it.
   */
  def require(session: SparkSession, query: LogicalPlan): Unit =
    for (relation <- relations(query)) TableLookup.sqlName(relation) match {
      case Some(name) if isLakeTable(relation) => TableLookup.resolve(session, name)
      case _ => requireUnnamed(session, relation)
    }

  /** Checks a fresh copy of a relation without a name: analyzer rules may have marked the relation. */
  private def requireUnnamed(session: SparkSession, relation: LogicalPlan): Unit = {
    val fresh = relation match {
      case reusable: MultiInstanceRelation => reusable.newInstance()
      case other => other
    }
    val name = nameInErrors(relation)
    val query = ReadPermission.asPermissionError(name) {
      session.sessionState.analyzer.execute(Project(fresh.output, fresh))
    }
    ReadPermission.require(session, name, query, fresh)
  }

  private def nameInErrors(relation: LogicalPlan): String = relation match {
    case FileRelation(files) => files.location.rootPaths.mkString("`", "`, `", "`")
    case _ => relation.nodeName
  }

  // A table whose release is refused has no readable values.
  private def isLakeTable(relation: LogicalPlan): Boolean =
    try TableFormats.open(relation).isDefined
    catch { case _: UnsupportedRelease => false }

  /** The relations of its views and sub-queries too, each source once. */
  private def relations(query: LogicalPlan): Seq[LogicalPlan] = {
    val all = query.collectWithSubqueries {
      case relation @ (_: DataSourceV2Relation | _: LogicalRelation) => relation
    }
    all.groupBy(ReadPermission.source).values.map(_.head).toSeq
  }
}
