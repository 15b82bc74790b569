package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression, KnownFloatingPointNormalized}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.JoinKeys
import org.metastore.spark.pruning.FilterCompiler
import org.metastore.spark.reason.Optional
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
      val target = new KeyTarget(planner, insertingMerge(plan))
      plan.transformUp { case join: Join => prune(join, target) }
    }

  private def settings = new MetastoreConf(conf)

  // Only that rule of Spark plans the filters.
  private def isWanted: Boolean =
    settings.pruningJoinEnabled && conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled

  /** A MERGE that only inserts, where keys may choose among the files of its target. */
  private def insertingMerge(plan: LogicalPlan): Option[InsertingMerge] =
    InsertingMerge.fromPlan(plan).filter(_.pruning(settings).byKeys)

  private def prune(join: Join, target: KeyTarget): LogicalPlan = join match {
    case ExtractEquiJoinKeys(kind, leftKeys, rightKeys, _, _, left, right, _)
        if join.getTagValue(Pruned).isEmpty =>
      def withLeft = for {
        keys <- keysOfRight(kind, right, rightKeys)
        pruned <- pruneSide(target, left, leftKeys, keys)
      } yield join.copy(left = pruned)
      def withRight = for {
        keys <- keysOfLeft(kind, left, leftKeys)
        pruned <- pruneSide(target, right, rightKeys, keys)
      } yield join.copy(right = pruned)
      withLeft.orElse(withRight) match {
        case Some(pruned) =>
          val copy = WithTags(pruned, join)
          copy.setTagValue(Pruned, true)
          copy
        case None => join
      }
    case other => other
  }

  /** The probe with a filter for each key that reaches a scan; None where there is none. */
  private def pruneSide(
      target: KeyTarget,
      probe: LogicalPlan,
      keys: Seq[Expression],
      side: JoinKeySide): Option[LogicalPlan] =
    if (!side.isRepeatable) None
    else {
      var pruned = Option.empty[LogicalPlan]
      for (i <- keys.indices) {
        val filtered = target.above(pruned.getOrElse(probe), keys(i)) { (scan, key) =>
          Optional.when(side.isFor(scan, target.isOfCommand(scan)))(side.filter(key, i))
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

  // Rows of the left side that match no row of the right side are not used.
  private def keysOfRight(kind: JoinType, plan: LogicalPlan, keys: Seq[Expression]): Option[JoinKeySide] =
    kind match {
      case _: InnerLike | LeftSemi => Some(new BroadcastKeys(plan, keys))
      case RightOuter => Some(new QueriedKeys(plan, keys))
      case _ => None
    }

  private def keysOfLeft(kind: JoinType, plan: LogicalPlan, keys: Seq[Expression]): Option[JoinKeySide] =
    kind match {
      case _: InnerLike => Some(new BroadcastKeys(plan, keys))
      case LeftAnti => Some(new QueriedKeys(plan, keys))
      case _ => None
    }
}

/** Finds the scan of ours that a join key comes from, below nodes that let a filter by the key pass. */
private final class KeyTarget(planner: ScanPlanner, inserting: Option[InsertingMerge]) {

  /** Makes the filter of a scan by a key; None if it makes none. */
  type MakeFilter = (LogicalPlan, Expression) => Option[Expression]

  /** The plan with a filter directly above the scan; None where the key does not reach one, or `filter` makes none. */
  def above(plan: LogicalPlan, key: Expression)(filter: MakeFilter): Option[LogicalPlan] =
    plan match {
      case project: Project if project.projectList.forall(_.deterministic) || numbersTarget(project) =>
        val keyBelow = RowFilters.below(project.projectList, key)
        for (child <- above(project.child, keyBelow)(filter)) yield project.copy(child = child)
      case whole @ Filter(condition, scan) if condition.deterministic && isTarget(scan) =>
        for (added <- filterOf(scan, key)(filter))
          yield whole.copy(And(condition, added), withKeys(scan))
      case other: Filter if other.condition.deterministic =>
        for (child <- above(other.child, key)(filter)) yield other.copy(child = child)
      case join: Join if isFixed(join) => aboveSide(join, key)(filter)
      case scan if isTarget(scan) =>
        for (added <- filterOf(scan, key)(filter)) yield Filter(added, withKeys(scan))
      case _ => None
    }

  /** The join with a filter on the side that has the key. */
  private def aboveSide(join: Join, key: Expression)(filter: MakeFilter): Option[LogicalPlan] =
    if (key.references.subsetOf(join.left.outputSet) && keepsLeft(join.joinType))
      for (left <- above(join.left, key)(filter)) yield WithTags(join.copy(left = left), join)
    else if (key.references.subsetOf(join.right.outputSet) && keepsRight(join.joinType))
      for (right <- above(join.right, key)(filter)) yield WithTags(join.copy(right = right), join)
    else None

  /** Whether a plan adds no more to the target of a MERGE than numbers and file names, by which the command knows its rows. */
  private def numbersTarget(plan: LogicalPlan): Boolean = plan match {
    case Project(list, child) => list.forall(RowFilters.isPlain) && numbersTarget(child)
    case Filter(condition, child) => condition.deterministic && numbersTarget(child)
    case scan => isOfCommand(scan)
  }

  /** Whether a scan reads the table whose rows a command looks for. */
  def isOfCommand(plan: LogicalPlan): Boolean = plan match {
    case scan: DataSourceV2ScanRelation =>
      RowLevelTarget.isRead(scan.relation) || inserting.exists(_.reads(scan.relation))
    case FileRelation(files) => ScanMark.permit(files).exists(_.command.isDefined)
    case _ => false
  }

  private def isFixed(join: Join): Boolean = join.condition.forall(_.deterministic)

  private def filterOf(scan: LogicalPlan, key: Expression)(filter: MakeFilter): Option[Expression] = {
    val plainKey = withoutNormalization(key)
    if (isPrunable(scan, plainKey)) filter(scan, plainKey) else None
  }

  // A filter on columns of one side may go below a join that neither adds rows to that side nor makes nulls of its columns.
  private val keepsLeft: Set[JoinType] = Set(Inner, Cross, LeftOuter, LeftSemi, LeftAnti)
  private val keepsRight: Set[JoinType] = Set(Inner, Cross, RightOuter)

  // The rules of pruning take all NaN for one value, and so both zeros.
  private def withoutNormalization(key: Expression): Expression = key.transform {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
  }

  private def isTarget(plan: LogicalPlan): Boolean = plan match {
    case FileRelation(files) => ScanMark.permit(files).exists(_.takesKeys)
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
