package org.metastore.spark.sql

import java.io.IOException

import scala.util.control.NonFatal

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

import org.metastore.spark.tables.{TableFormats, UnsupportedRelease}

/**
 * Asks whether the session's user may see every value of a table, before its statistics are read or made.
 *
 * Catalogs check privileges when a table is loaded, but plug-ins do it in rules, at any point of Spark's
 * `SparkSessionExtensions`, which no table function passes through. They are shown the query that reads all columns, and it
 * must stay that query until it would run: what hides rows or changes values anywhere on the way leaves a trace in its plan.
 */
private[spark] object ReadPermission {

  /**
   * Passes where a query is allowed and left as it is.
   *
   * @param name     as the user wrote it
   * @param query    analyzed: all columns of one relation
   * @param relation that relation
   * @throws MetastoreException METASTORE_ACCESS_DENIED: a rule refuses; METASTORE_UNSUPPORTED_TABLE: one hides rows or values
   */
  def require(session: SparkSession, name: String, query: LogicalPlan, relation: LogicalPlan): Unit = requireAllowed(name) {
    session.sessionState.analyzer.checkAnalysis(query)
    val rules = new ExtensionRules(session)
    def physical = session.sessionState.executePlan(query, CommandExecutionMode.SKIP).sparkPlan
    // Of the columns in their order no projection is left, which is all that some rules look at.
    val turned = Project(query.output.reverse, query)
    showsAll(rules.rewrite(Project(relation.output, relation)), relation) && Seq(query, turned).forall { one =>
      val optimized = rules.optimizeWith(one)
      optimized.forall(showsAll(_, relation)) && rules.leavePlanning(optimized.head)
    } && rules.leavePhysical(physical)
  }

  /**
   * Passes where a query that is about to run is what Spark alone would make of its analyzed plan.
   *
   * @throws MetastoreException as `require`
   */
  def requireUnchanged(name: String, query: QueryExecution): Unit = requireAllowed(name)(asActive(query.sparkSession) {
    val rules = new ExtensionRules(query.sparkSession)
    val (optimized, alone) = (rules.optimizeWith(query.analyzed), rules.optimizeWithout(query.analyzed))
    optimized.zip(alone).forall { case (one, other) => one.sameResult(other) } && rules.leavePlanning(optimized.head) &&
      rules.leavePhysical(query.sparkPlan)
  })

  /** Rules ask the active session who its user is: it must be the one that will run the query. */
  private[spark] def asActive[T](session: SparkSession)(ask: => T): T = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try ask finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession(_))
  }

  /**
   * As `require`, of every table that an analyzed query reads, by its name where it has one: below what a policy has made of
   * the query already stands the bare table.
   */
  def requireOfAll(session: SparkSession, query: LogicalPlan): Unit = relations(query).foreach { relation =>
    TableLookup.sqlName(relation).filter(_ => isLakeTable(relation)) match {
      case Some(name) => TableLookup.resolve(session, name)
      case None => requireUnnamed(session, relation)
    }
  }

  /** Of a relation without a name: rules for analysis have passed over it already, and may have left their sign on it. */
  private def requireUnnamed(session: SparkSession, relation: LogicalPlan): Unit = {
    val fresh = relation match {
      case known: MultiInstanceRelation => known.newInstance()
      case other => other
    }
    val name = relation match {
      case OfFiles(paths) => paths
      case other => other.nodeName
    }
    val query = asPermissionError(name)(session.sessionState.analyzer.execute(Project(fresh.output, fresh)))
    require(session, name, query, fresh)
  }

  private object OfFiles {
    def unapply(plan: LogicalPlan): Option[String] = Some(plan).collect { case v1: LogicalRelation => v1.relation }.collect {
      case files: HadoopFsRelation => files.location.rootPaths.mkString("`", "`, `", "`")
    }
  }

  // Nothing is known of the values of a table whose release is refused.
  private def isLakeTable(relation: LogicalPlan): Boolean =
    try TableFormats.of(relation).isDefined catch { case _: UnsupportedRelease => false }

  /** Those of its views and sub-queries too, each once. */
  private def relations(query: LogicalPlan): Seq[LogicalPlan] =
    query.collectWithSubqueries { case relation @ (_: DataSourceV2Relation | _: LogicalRelation) => relation }
      .groupBy(source).values.map(_.head).toSeq

  private def requireAllowed(name: String)(isAllowed: => Boolean): Unit = if (!asPermissionError(name)(isAllowed)) throw MetastoreException.rowsHidden(name)

  /** Says in one line whatever a plug-in throws to refuse; errors of Spark's own are those of every query. */
  def asPermissionError[T](name: String)(ask: => T): T = try ask catch {
    case e @ (_: AnalysisException | _: IOException) => throw e
    // A metadata file that is gone; what a catalog forbids is not among these.
    case e: Exception if isUnreadable(e) => throw MetastoreException.unsupportedTable(name, s"it cannot be loaded: ${MetastoreException.firstLine(e)}")
    case NonFatal(e) => throw MetastoreException.accessDenied(name, e)
  }

  private def isUnreadable(e: Exception): Boolean =
    e.getClass.getName.startsWith("org.apache.iceberg.exceptions.") &&
      !Seq("ForbiddenException", "NotAuthorizedException").contains(e.getClass.getSimpleName)

  /** Whether a plan reads all rows and columns of a relation as they are. */
  private def showsAll(plan: LogicalPlan, relation: LogicalPlan): Boolean = plan match {
    case Project(columns, child) => FullProjection.isFull(columns, child) && showsAll(child, relation)
    case leaf: LeafNode => source(leaf).exists(source(relation).contains) && relation.outputSet.subsetOf(leaf.outputSet)
    case _ => false
  }

  private def source(leaf: LogicalPlan): Option[Any] = leaf match {
    case scan: DataSourceV2ScanRelation => Some(scan.relation.table)
    case v2: DataSourceV2Relation => Some(v2.table)
    case v1: LogicalRelation => Some(v1.relation)
    case _ => None
  }
}
