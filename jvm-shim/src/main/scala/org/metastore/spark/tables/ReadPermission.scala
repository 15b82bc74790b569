package org.metastore.spark.tables

import java.io.IOException
import java.net.{SocketException, SocketTimeoutException, UnknownHostException}

import scala.util.control.NonFatal

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{
  AnalysisHelper, LeafNode, LogicalPlan, Project, ReturnAnswer
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution, SparkOptimizer, SparkPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

import org.metastore.spark.reason.{MetastoreException, Recoverable}

/** Asks whether the session's user may see every value of a table, before its statistics are read or made. */
private[spark] object ReadPermission {

  /** Passes where a query is allowed and left as it is. */
  def require(session: SparkSession, name: String, query: LogicalPlan, relation: LogicalPlan): Unit =
    requireAllowed(name) {
      session.sessionState.analyzer.checkAnalysis(query)
      val rules = new ExtensionRules(session)
      def physical = session.sessionState.executePlan(query, CommandExecutionMode.SKIP).sparkPlan
      // Of the columns in their order no projection is left, which is all that some rules look at.
      val turned = Project(query.output.reverse, query)
      showsAll(rules.rewrite(Project(relation.output, relation)), relation) && Seq(query, turned).forall {
        one =>
          val optimized = rules.optimizeWith(one)
          optimized.forall(showsAll(_, relation)) && rules.leavePlanning(optimized.head)
      } && rules.leavePhysical(physical)
    }

  /** Passes where a query that is about to run is what Spark alone would make of its analyzed plan. */
  def requireUnchanged(name: String, query: QueryExecution): Unit =
    requireAllowed(name)(asActive(query.sparkSession) {
      val rules = new ExtensionRules(query.sparkSession)
      val (optimized, alone) = (rules.optimizeWith(query.analyzed), rules.optimizeWithout(query.analyzed))
      optimized.zip(alone).forall { case (one, other) => one.sameResult(other) } && rules.leavePlanning(
        optimized.head) &&
      rules.leavePhysical(query.sparkPlan)
    })

  /** Whether no strategy of others makes a physical plan of its own for an optimized plan. */
  def leavesPlanning(session: SparkSession, optimized: LogicalPlan): Boolean =
    new ExtensionRules(session).leavePlanning(optimized)

  /** Rules ask the active session who its user is: it must be the one that will run the query. */
  private[spark] def asActive[T](session: SparkSession)(ask: => T): T = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try ask
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession(_))
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
    def unapply(plan: LogicalPlan): Option[String] = Some(plan).collect { case v1: LogicalRelation =>
      v1.relation
    }.collect {
      case files: HadoopFsRelation => files.location.rootPaths.mkString("`", "`, `", "`")
    }
  }

  // Nothing is known of the values of a table whose release is refused.
  private def isLakeTable(relation: LogicalPlan): Boolean =
    try TableFormats.of(relation).isDefined
    catch { case _: UnsupportedRelease => false }

  /** Those of its views and sub-queries too, each once. */
  private def relations(query: LogicalPlan): Seq[LogicalPlan] =
    query.collectWithSubqueries { case relation @ (_: DataSourceV2Relation | _: LogicalRelation) => relation }
      .groupBy(source).values.map(_.head).toSeq

  private def requireAllowed(name: String)(isAllowed: => Boolean): Unit =
    if (!asPermissionError(name)(isAllowed)) throw MetastoreException.rowsHidden(name)

  /** Says in one line whatever a plug-in throws to refuse; errors of Spark's own are those of every query. */
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

  private def source(leaf: LogicalPlan): Option[Any] = leaf match {
    case scan: DataSourceV2ScanRelation => Some(scan.relation.table)
    case v2: DataSourceV2Relation => Some(v2.table)
    case v1: LogicalRelation => Some(v1.relation)
    case _ => None
  }
}

/** What is thrown where a catalog, or a service behind it, does not answer: it says nothing about the table or the user. */
private[spark] object CatalogFailure {
  private val Names = Set("RESTException", "ServiceFailureException", "ServiceUnavailableException")
  private val OfHive = "TTransportException" // which Hive's client tells of in texts

  def is(e: Throwable): Boolean = MetastoreException.causes(e).exists {
    case _: SocketException | _: UnknownHostException | _: SocketTimeoutException | _: ClassNotFoundException =>
      true
    case other => Names(other.getClass.getSimpleName) || other.toString.contains(OfHive)
  }
}

/** What a projection shows of the table below it. */
private[spark] object FullProjection {

  /** Whether it shows every column, each as it is or as Spark itself pads CHAR when it reads. */
  def isFull(columns: Seq[NamedExpression], child: LogicalPlan): Boolean = {
    val shown = columns.flatMap(readOf)
    shown.length == columns.length && child.outputSet.subsetOf(AttributeSet(shown))
  }

  private def readOf(column: NamedExpression): Option[Attribute] = column match {
    case plain: Attribute => Some(plain)
    // Any other expression over the column, even one with padding in it, may be somebody's mask.
    case padded @ Alias(expression, name) => expression.references.toSeq match {
        case Seq(of)
            if of.name == name && expression.semanticEquals(
              CharVarcharUtils.addPaddingForScan(of.withMetadata(padded.metadata))) =>
          Some(of)
        case _ => None
      }
    case _ => None
  }
}

/** What the rules of a session that may be somebody's policy make of a plan, wherever `SparkSessionExtensions` put them. */
private[spark] final class ExtensionRules(session: SparkSession) {
  private val state = session.sessionState
  private val own = state.optimizer.asInstanceOf[SparkOptimizer]

  /** An optimized plan: as it is in the end, and before filters were pushed into scans, which hide them. */
  def optimizeWith(plan: LogicalPlan): Seq[LogicalPlan] = run(plan, new RecordingOptimizer(areAsked = true))

  /** The same by Spark's rules alone. */
  def optimizeWithout(plan: LogicalPlan): Seq[LogicalPlan] =
    run(plan, new RecordingOptimizer(areAsked = false))

  /** Whether no strategy makes a physical plan of its own for any part of an optimized plan. */
  def leavePlanning(optimized: LogicalPlan): Boolean = {
    val strategies =
      selectRules(state.experimentalMethods.extraStrategies ++ state.planner.extraPlanningStrategies)
    val nodes = ReturnAnswer(optimized) +: optimized.collect { case node => node }
    strategies.forall(strategy => nodes.forall(strategy(_).isEmpty))
  }

  /** Whether rules for physical plans, which are rare, leave one as it is. */
  def leavePhysical(physical: => SparkPlan): Boolean = {
    val adaptive = state.adaptiveRulesHolder
    val columnar = selectRules(state.columnarRules).flatMap(rule =>
      Seq(rule.preColumnarTransitions, rule.postColumnarTransitions))
    val rules: Seq[Rule[SparkPlan]] = columnar ++ selectRules(
      adaptive.queryPostPlannerStrategyRules ++ adaptive.queryStagePrepRules ++ adaptive.queryStageOptimizerRules)
    lazy val plan = physical
    rules.forall(rule => rule(plan).fastEquals(plan))
  }

  private def run(plan: LogicalPlan, optimizer: RecordingOptimizer): Seq[LogicalPlan] =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      optimizer.execute(all(optimizer.normalizations)(plan)) +: optimizer.beforePushDown.toSeq
    }

  /** What the optimizer's rules make of a plan that was not optimized: Spark's may take away what they look for. */
  def rewrite(plan: LogicalPlan): LogicalPlan = AnalysisHelper.allowInvokingTransformsInAnalyzer {
    all(selectRules(
      own.extendedOperatorOptimizationRules ++ own.preCBORules ++ state.experimentalMethods.extraOptimizations))(
      plan)
  }

  private def all(rules: Seq[Rule[LogicalPlan]])(plan: LogicalPlan) =
    rules.foldLeft(plan)((seen, rule) => rule(seen))

  private def selectRules[T](rules: scala.collection.Seq[T]): List[T] =
    rules.filterNot(rule => notAsked.exists(rule.getClass.getName.startsWith)).toList

  private val notAsked = TableFormats.all.flatMap(_.rules) ++
    Seq("org.metastore.", "org.apache.comet.", "org.apache.gluten.", "com.nvidia.spark.rapids.")

  private final class RecordingOptimizer(areAsked: Boolean)
    extends SparkOptimizer(state.catalogManager, state.catalog, state.experimentalMethods) {
    @volatile private var seen: Option[LogicalPlan] = None

    def beforePushDown: Option[LogicalPlan] = seen

    private object Watch extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = {
        seen = Some(plan)
        plan
      }
    }

    def normalizations: Seq[Rule[LogicalPlan]] = injected(state.planNormalizationRules)
    override def extendedOperatorOptimizationRules: Seq[Rule[LogicalPlan]] =
      injected(own.extendedOperatorOptimizationRules)
    override def preCBORules: Seq[Rule[LogicalPlan]] = injected(own.preCBORules)
    // Variants are read in parts by a projection that is none of a policy's.
    override def earlyScanPushDownRules: Seq[Rule[LogicalPlan]] =
      Watch +: own.earlyScanPushDownRules.filterNot(_.getClass.getSimpleName == "PushVariantIntoScan$").toList
    override def defaultBatches: Seq[Batch] =
      super.defaultBatches.filter(areAsked || _.name != "User Provided Optimizers")

    private def injected(rules: scala.collection.Seq[Rule[LogicalPlan]]) =
      if (areAsked) selectRules(rules) else Nil
  }
}
