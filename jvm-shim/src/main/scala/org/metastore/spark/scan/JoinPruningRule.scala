package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{
  And, Attribute, Expression, KnownFloatingPointNormalized, PlanExpression
}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.JoinKeys
import org.metastore.spark.pruning.FilterCompiler
import org.metastore.spark.tables.FileRelation

/**
 * Lets the keys of the small side of an equi-join choose the data files of the other side when the query runs: puts Spark's own
 * filter of dynamic partition pruning above scans of ours, once joins are ordered. It leaves out files, never a row that is used.
 */
final class JoinPruningRule extends Rule[LogicalPlan] {
  import JoinPruningRule._

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!isWanted || plan.isStreaming || PlanScope.isCorrelated(plan)) plan
    else ScanPlanner.recover("A join", plan) {
      val planner = ScanPlanner.logical(
        SparkSession.active,
        settings,
        PlanScope.Everything,
        mayLimit = false,
        _ => JoinKeys.Unknown)
      val target = new KeyTarget(planner)
      plan.transformUp { case join: Join => prune(join, target) }
    }

  private def settings = new MetastoreConf(conf)

  // Only that rule of Spark plans the filters.
  private def isWanted: Boolean =
    settings.pruningJoinEnabled && conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled

  private def prune(join: Join, target: KeyTarget): LogicalPlan = join match {
    case ExtractEquiJoinKeys(kind, leftKeys, rightKeys, _, _, left, right, _)
        if join.getTagValue(Pruned).isEmpty =>
      val byRight = if (mayLoseLeft(kind)) pruneSide(target, left, leftKeys, right, rightKeys) else None
      val byLeft = if (byRight.isEmpty && mayLoseRight(kind))
        pruneSide(target, right, rightKeys, left, leftKeys)
      else None
      if (byRight.isEmpty && byLeft.isEmpty) join
      else {
        val copy = WithTags(join.copy(left = byRight.getOrElse(left), right = byLeft.getOrElse(right)), join)
        copy.setTagValue(Pruned, true)
        copy
      }
    case other => other
  }

  /** The probe with a filter for each key that reaches a scan; None where there is none. */
  private def pruneSide(
      target: KeyTarget,
      probe: LogicalPlan,
      keys: Seq[Expression],
      build: LogicalPlan,
      buildKeys: Seq[Expression]): Option[LogicalPlan] =
    if (!BuildSide.isRepeatable(build, buildKeys)) None
    else {
      var pruned = Option.empty[LogicalPlan]
      for (i <- keys.indices) {
        val side = new BuildSide(build, buildKeys, i)
        val filtered = target.above(pruned.getOrElse(probe), keys(i)) { (scan, key) =>
          if (side.isSmallFor(scan)) Some(side.filter(key)) else None
        }
        if (filtered.isDefined) pruned = filtered
      }
      pruned
    }
}

object JoinPruningRule {
  private val Pruned = TreeNodeTag[Boolean]("metastore.join.pruned")

  /** Adds the rule to those that Spark runs last: joins are ordered, scans are built, and Spark's own filters of this kind are in place. */
  def register(session: SparkSession): Unit = {
    val methods = session.sessionState.experimentalMethods
    methods.synchronized { // queries of one session may be planned side by side
      if (!methods.extraOptimizations.exists(_.isInstanceOf[JoinPruningRule]))
        methods.extraOptimizations :+= new JoinPruningRule
    }
  }

  // Of an outer join Spark broadcasts the side that would be pruned.
  private def mayLoseLeft(kind: JoinType): Boolean = kind match {
    case _: InnerLike | LeftSemi => true
    case _ => false
  }

  private def mayLoseRight(kind: JoinType): Boolean = kind.isInstanceOf[InnerLike]
}

/** The side of a join whose keys are collected; `key` is the place of one of them. */
private final class BuildSide(plan: LogicalPlan, keys: Seq[Expression], key: Int) {

  /** Whether there are few keys, and fewer rows than in a scan. */
  def isSmallFor(scan: LogicalPlan): Boolean = plan.stats.rowCount match {
    case Some(rows) => rows <= JoinKeyFilter.MostKeys && scan.stats.rowCount.forall(_ > rows)
    case None => plan.stats.sizeInBytes < scan.stats.sizeInBytes
  }

  /** A filter by the keys in the broadcast of the join, if it makes one: nothing is run for the filter alone. */
  def filter(probeKey: Expression): Expression = JoinKeySubquery(probeKey, plan, keys, key)
}

private object BuildSide {

  /** Whether each run of the side has the same keys. A filter that waits for another sub-query may wait for its own thread. */
  def isRepeatable(plan: LogicalPlan, keys: Seq[Expression]): Boolean =
    keys.forall(_.deterministic) && !plan.exists(!isFixed(_))

  // A LIMIT or a sample may take other rows the next time, and other nodes may do anything.
  private def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union =>
      node.expressions.forall(one => isFixed(one) && !one.exists(_.isInstanceOf[PlanExpression[_]]))
    case _: DataSourceV2ScanRelation | _: LocalRelation | _: OneRowRelation | _: Range => true
    case _: InMemoryRelation | _: LogicalRDD => true
    case other => FileRelation.unapply(other).isDefined
  }

  private def isFixed(expression: Expression): Boolean =
    expression.transform {
      case counter if ScanFormats.countsRows(counter) => counter.children.head
    }.deterministic
}

/** Finds the scan of ours that a join key comes from, below nodes that let a filter by the key pass. */
private final class KeyTarget(planner: ScanPlanner) {

  /** The plan with a filter directly above the scan; None where the key does not reach one, or `filter` makes none. */
  def above(
      plan: LogicalPlan,
      key: Expression)(filter: (LogicalPlan, Expression) => Option[Expression]): Option[LogicalPlan] =
    plan match {
      case project: Project if project.projectList.forall(_.deterministic) || numbersTarget(project) =>
        above(project.child, RowFilters.below(project.projectList, key))(filter).map(child =>
          project.copy(child = child))
      case only @ Filter(condition, scan) if condition.deterministic && isTarget(scan) =>
        filterOf(scan, key)(filter).map(more => only.copy(And(condition, more), withKeys(scan)))
      case other: Filter if other.condition.deterministic =>
        above(other.child, key)(filter).map(child => other.copy(child = child))
      case join: Join
          if isFixed(join) && key.references.subsetOf(join.left.outputSet) && keepsLeft(join.joinType) =>
        above(join.left, key)(filter).map(left => WithTags(join.copy(left = left), join))
      case join: Join
          if isFixed(join) && key.references.subsetOf(join.right.outputSet) && keepsRight(join.joinType) =>
        above(join.right, key)(filter).map(right => WithTags(join.copy(right = right), join))
      case scan if isTarget(scan) => filterOf(scan, key)(filter).map(Filter(_, withKeys(scan)))
      case _ => None
    }

  /** Whether a plan adds no more to the target of a MERGE than numbers and file names, by which the command knows its rows. */
  private def numbersTarget(plan: LogicalPlan): Boolean = plan match {
    case Project(list, child) => list.forall(RowFilters.isPlain) && numbersTarget(child)
    case Filter(condition, child) => condition.deterministic && numbersTarget(child)
    case scan => isReadOfCommand(scan)
  }

  private def isReadOfCommand(plan: LogicalPlan): Boolean = plan match {
    case scan: DataSourceV2ScanRelation => RowLevelTarget.isRead(scan.relation)
    case FileRelation(files) => ScanMark.find(files) match {
        case Some(permit: ScanMark.Permit) => permit.command.isDefined
        case _ => false
      }
    case _ => false
  }

  private def isFixed(join: Join): Boolean = join.condition.forall(_.deterministic)

  private def filterOf(
      scan: LogicalPlan,
      key: Expression)(filter: (LogicalPlan, Expression) => Option[Expression]) = {
    val plain = withoutNormalization(key)
    if (isPrunable(scan, plain)) filter(scan, plain) else None
  }

  // A filter on columns of one side may go below a join that neither adds rows to that side nor makes nulls of its columns.
  private def keepsLeft(kind: JoinType): Boolean = kind match {
    case _: InnerLike | LeftOuter | LeftSemi | LeftAnti => true
    case _ => false
  }

  private def keepsRight(kind: JoinType): Boolean = kind match {
    case _: InnerLike | RightOuter => true
    case _ => false
  }

  // The rules of pruning take all NaN for one value, and so both zeros.
  private def withoutNormalization(key: Expression): Expression = key.transform {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
  }

  private def isTarget(plan: LogicalPlan): Boolean = plan match {
    case FileRelation(files) => ScanMark.find(files) match {
        case Some(permit: ScanMark.Permit) => permit.takesKeys
        case _ => false
      }
    case relation: DataSourceV2ScanRelation => PrunedScan.withKeys(relation.scan).isDefined
    case _ => false
  }

  private def withKeys(plan: LogicalPlan): LogicalPlan = plan match {
    case relation: DataSourceV2ScanRelation =>
      WithTags(CaseClassCopy(relation, "scan" -> PrunedScan.withKeys(relation.scan).get), relation)
    case other => other
  }

  /** Whether files can be skipped by the values of a key: a column, or an expression with a rule or with statistics. */
  private def isPrunable(scan: LogicalPlan, key: Expression): Boolean =
    isOfColumns(scan, key) && JoinKeyFilter.example(key).exists(isKnown(scan, _))

  private def isOfColumns(scan: LogicalPlan, key: Expression): Boolean =
    key.references.nonEmpty && key.references.subsetOf(scan.outputSet) &&
      !key.references.exists(isOfPartition(scan, _))

  private def isKnown(scan: LogicalPlan, conjunct: Expression): Boolean =
    RelationAdapters.all.iterator.flatMap(_.columns(scan, planner)).exists { known =>
      FilterCompiler.compile(Seq(conjunct), known.resolver).columns.nonEmpty
    }

  // Partitions are chosen by Spark itself.
  private def isOfPartition(scan: LogicalPlan, column: Attribute): Boolean = scan match {
    case FileRelation(files) => files.partitionSchema.fieldNames.exists(conf.resolver(_, column.name))
    case other => other.isInstanceOf[LogicalRelation]
  }

  private def conf = SQLConf.get
}
