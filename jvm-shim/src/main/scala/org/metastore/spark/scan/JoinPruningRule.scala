package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression, KnownFloatingPointNormalized}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.estimates.JoinKeys
import org.metastore.spark.pruning.FilterCompiler
import org.metastore.spark.reason.Optional
import org.metastore.spark.tables.FileRelation

/**
 * Lets the keys of the small side of an equi-join choose the data files of the other side when the query
 * runs. After joins are ordered, it puts Spark's own filter of dynamic partition pruning above scans of ours.
 * The filter drops files, never a row that the query uses.
 */
final class JoinPruningRule extends Rule[LogicalPlan] {
  import JoinPruningRule._

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!isEnabled || plan.isStreaming || PlanScope.isCorrelated(plan)) plan
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

  // Only Spark's rule of dynamic partition pruning plans the filters.
  private def isEnabled: Boolean =
    settings.pruningJoinEnabled && conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled

  /** The MERGE that only inserts, if keys may choose among the files of its target. */
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

  /** Adds a filter for each key that reaches a scan of the probe side; None if no key does. */
  private def pruneSide(
      target: KeyTarget,
      probe: LogicalPlan,
      keys: Seq[Expression],
      side: JoinKeySide): Option[LogicalPlan] =
    if (!side.isRepeatable) None
    else {
      var pruned = Option.empty[LogicalPlan]
      for (i <- keys.indices) {
        val filtered = target.addFilterAboveScan(pruned.getOrElse(probe), keys(i)) { (scan, key) =>
          Optional.when(side.isWorthIt(scan, target.isCommandTarget(scan)))(side.filter(key, i))
        }
        if (filtered.isDefined) pruned = filtered
      }
      pruned
    }
}

object JoinPruningRule {
  private val Pruned = TreeNodeTag[Boolean]("metastore.join.pruned")

  /**
   * Adds the rule to those that Spark runs last: then joins are ordered, scans are built, and Spark has added
   * its own filters of dynamic partition pruning.
   */
  def register(session: SparkSession): Unit = {
    val methods = session.sessionState.experimentalMethods
    methods.synchronized { // queries of one session may be planned at the same time
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

/** Finds our scan that a join key comes from, below nodes through which a filter can move. */
private final class KeyTarget(planner: ScanPlanner, inserting: Option[InsertingMerge]) {

  /** Makes the filter of a scan by a key, or None. */
  type MakeFilter = (LogicalPlan, Expression) => Option[Expression]

  /** Adds a filter directly above the scan; None if the key reaches no scan, or `makeFilter` returns None. */
  def addFilterAboveScan(plan: LogicalPlan, key: Expression)(makeFilter: MakeFilter): Option[LogicalPlan] =
    plan match {
      case project: Project if project.projectList.forall(_.deterministic) || numbersTarget(project) =>
        val keyBelow = RowFilters.below(project.projectList, key)
        for (child <- addFilterAboveScan(project.child, keyBelow)(makeFilter))
          yield project.copy(child = child)
      case Filter(condition, scan) if condition.deterministic && isTarget(scan) =>
        for (filtered <- filterScan(scan, key)(makeFilter))
          yield filtered.copy(condition = And(condition, filtered.condition))
      case filter: Filter if filter.condition.deterministic =>
        for (child <- addFilterAboveScan(filter.child, key)(makeFilter)) yield filter.copy(child = child)
      case join: Join if isFixed(join) => addFilterInJoin(join, key)(makeFilter)
      case scan if isTarget(scan) => filterScan(scan, key)(makeFilter)
      case _ => None
    }

  /** The filter above a scan, which then gets the keys; None if the key cannot skip files of the scan. */
  private def filterScan(scan: LogicalPlan, key: Expression)(makeFilter: MakeFilter): Option[Filter] = {
    val plainKey = withoutNormalization(key)
    if (!isPrunable(scan, plainKey)) None
    else for (condition <- makeFilter(scan, plainKey); joined <- PrunedScan.withKeys(scan))
      yield Filter(condition, joined)
  }

  /** Adds a filter on the side of a join that has the key. */
  private def addFilterInJoin(join: Join, key: Expression)(makeFilter: MakeFilter): Option[LogicalPlan] =
    if (key.references.subsetOf(join.left.outputSet) && keepsLeft(join.joinType))
      for (left <- addFilterAboveScan(join.left, key)(makeFilter))
        yield WithTags(join.copy(left = left), join)
    else if (key.references.subsetOf(join.right.outputSet) && keepsRight(join.joinType))
      for (right <- addFilterAboveScan(join.right, key)(makeFilter))
        yield WithTags(join.copy(right = right), join)
    else None

  // A MERGE adds row numbers and file names to its target, to identify the rows.
  private def numbersTarget(plan: LogicalPlan): Boolean = plan match {
    case Project(list, child) => list.forall(RowFilters.isPlain) && numbersTarget(child)
    case Filter(condition, child) => condition.deterministic && numbersTarget(child)
    case scan => isCommandTarget(scan)
  }

  /** Whether a scan reads the table whose rows a command changes. */
  def isCommandTarget(plan: LogicalPlan): Boolean =
    PrunedScan.isCommandTarget(plan) || inserting.exists(_.reads(plan))

  private def isFixed(join: Join): Boolean = join.condition.forall(_.deterministic)

  // A filter on one side may move below a join that adds neither rows nor nulls to that side.
  private val keepsLeft: Set[JoinType] = Set(Inner, Cross, LeftOuter, LeftSemi, LeftAnti)
  private val keepsRight: Set[JoinType] = Set(Inner, Cross, RightOuter)

  // The rules of pruning treat all NaN as one value, and both zeros as one value.
  private def withoutNormalization(key: Expression): Expression = key.transform {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
  }

  private def isTarget(plan: LogicalPlan): Boolean = PrunedScan.withKeys(plan).isDefined

  /** Whether files can be skipped by a key: a column, or an expression with a rule or with statistics. */
  private def isPrunable(scan: LogicalPlan, key: Expression): Boolean =
    isOverColumns(scan, key) && JoinKeyFilter.example(key).exists(hasStatistics(scan, _))

  private def isOverColumns(scan: LogicalPlan, key: Expression): Boolean =
    key.references.nonEmpty && key.references.subsetOf(scan.outputSet) &&
      !key.references.exists(isPartitionColumn(scan, _))

  private def hasStatistics(scan: LogicalPlan, conjunct: Expression): Boolean =
    RelationAdapters.all.iterator.flatMap(_.columns(scan, planner)).exists { columns =>
      FilterCompiler.compile(Seq(conjunct), columns.resolver).columns.nonEmpty
    }

  // Spark itself chooses partitions.
  private def isPartitionColumn(scan: LogicalPlan, column: Attribute): Boolean =
    FileRelation.unapply(scan).exists(_.partitionSchema.fieldNames.exists(conf.resolver(_, column.name)))

  private def conf = SQLConf.get
}
