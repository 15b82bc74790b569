package org.metastore.spark.tables

import java.io.IOException
import java.net.{SocketException, SocketTimeoutException, UnknownHostException}

import scala.util.control.NonFatal

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

import org.metastore.spark.reason.{MetastoreException, Recoverable}

/** Checks that the session's user may see every value of a table, before its statistics are read or made. */
private[spark] object ReadPermission {

  /** Checks that a query is allowed, and that no rule of a plug-in changes it. */
  def require(session: SparkSession, name: String, query: LogicalPlan, relation: LogicalPlan): Unit =
    requireAllowed(name) {
      session.sessionState.analyzer.checkAnalysis(query)
      val rules = new ExtensionRules(session)
      def isLeft(plan: LogicalPlan): Boolean = {
        val optimized = rules.optimizeWith(plan)
        optimized.forall(showsAll(_, relation)) && rules.leavePlanning(optimized.head)
      }
      def physical = session.sessionState.executePlan(query, CommandExecutionMode.SKIP).sparkPlan
      // A query of all columns in their order has no projection, and some rules look at projections alone.
      val turned = Project(query.output.reverse, query)
      showsAll(rules.rewrite(Project(relation.output, relation)), relation) &&
      isLeft(query) && isLeft(turned) &&
      rules.leavePhysical(physical)
    }

  /** Checks that a query runs as Spark alone would run its analyzed plan. */
  def requireUnchanged(name: String, query: QueryExecution): Unit =
    requireAllowed(name)(asActive(query.sparkSession) {
      val rules = new ExtensionRules(query.sparkSession)
      val optimized = rules.optimizeWith(query.analyzed)
      val bySparkAlone = rules.optimizeWithout(query.analyzed)
      def isSame = optimized.zip(bySparkAlone).forall { case (plan, expected) => plan.sameResult(expected) }
      isSame && rules.leavePlanning(optimized.head) && rules.leavePhysical(query.sparkPlan)
    })

  /** Whether no strategy of a plug-in makes a physical plan for an optimized plan. */
  def leavesPlanning(session: SparkSession, optimized: LogicalPlan): Boolean =
    new ExtensionRules(session).leavePlanning(optimized)

  /**
   * Runs a body with an active session: rules take the user from it, who must be the one that runs the query.
   */
  private[spark] def asActive[T](session: SparkSession)(ask: => T): T = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try ask
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession(_))
  }

  private def requireAllowed(name: String)(isAllowed: => Boolean): Unit =
    if (!asPermissionError(name)(isAllowed)) throw MetastoreException.rowsHidden(name)

  /** Turns a plug-in's refusal into an error of one line. Spark's own errors pass. */
  def asPermissionError[T](name: String)(ask: => T): T =
    try ask
    catch {
      case e @ (_: AnalysisException | _: IOException) => throw e
      case e: Exception if CatalogFailure.is(e) => throw MetastoreException.catalogFailed(name, e)
      case e: Exception if TableFormats.all.exists(_.isUnreadable(e)) =>
        throw MetastoreException.unsupportedTable(
          name,
          s"it cannot be loaded: ${MetastoreException.toldBy(e)}")
      case NonFatal(e) => throw MetastoreException.accessDenied(name, e)
      case Recoverable(e) => throw MetastoreException.failed(name, e) // such as no memory
    }

  /** Whether a plan reads all rows and columns of a relation as they are. */
  private def showsAll(plan: LogicalPlan, relation: LogicalPlan): Boolean = plan match {
    case Project(columns, child) => FullProjection.isFull(columns, child) && showsAll(child, relation)
    case leaf: LeafNode =>
      source(leaf).exists(source(relation).contains) && relation.outputSet.subsetOf(leaf.outputSet)
    case _ => false
  }

  private[tables] def source(leaf: LogicalPlan): Option[Any] = leaf match {
    case scan: DataSourceV2ScanRelation => Some(scan.relation.table)
    case v2: DataSourceV2Relation => Some(v2.table)
    case v1: LogicalRelation => Some(v1.relation)
    case _ => None
  }
}

/** Failures of a catalog, or of a service behind it: they say nothing about the table or the user. */
private[spark] object CatalogFailure {
  private val Names = Set("RESTException", "ServiceFailureException", "ServiceUnavailableException")
  private val HiveError = "TTransportException" // Hive's client names it in the text of other errors

  def is(e: Throwable): Boolean = MetastoreException.causes(e).exists {
    case _: SocketException | _: UnknownHostException | _: SocketTimeoutException | _: ClassNotFoundException =>
      true
    case other => Names(other.getClass.getSimpleName) || other.toString.contains(HiveError)
  }
}
