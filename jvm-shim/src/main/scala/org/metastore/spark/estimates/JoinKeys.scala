package org.metastore.spark.estimates

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate, Expand, Filter, Join, LeafNode, LogicalPlan, Project, Union
}
import org.apache.spark.sql.types.{BinaryType, DataType, StringType}

import org.metastore.spark.pruning.{ExpressionColumns, ValuePredicate}
import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.values.ColumnHistogram

/** The statistics of a relation's columns. */
final class RelationColumns(
    val resolver: ExpressionColumns,
    val histogram: (String, DataType) => Option[ColumnHistogram])

/**
 * Distinct counts of join keys that make Spark's formula T(A) T(B) / max(V(A), V(B)) return the size of the
 * join. With f(v) the number of rows with value v, that is V = T(A) T(B) / sum f_A(v) f_B(v). They are
 * computed for one query.
 */
final class JoinKeys private (counts: Map[ExprId, Double], shares: Map[ExprId, Double]) {

  /** The distinct count of a column; None if it is no key, or has no statistics. */
  def distinctCount(column: ExprId): Option[Double] = counts.get(column)

  /** The share of a scan's rows that remain after semi and anti joins on a column. */
  def remainingShare(column: ExprId): Double = shares.getOrElse(column, 1.0)
}

object JoinKeys extends PredicateHelper {
  val Unknown: JoinKeys = new JoinKeys(Map.empty, Map.empty)

  private val Near = 4 // times

  /** Whether a count is near enough to the true one for Spark's other estimates, such as that of GROUP BY. */
  private def isNear(count: Double, distinct: Double): Boolean =
    count >= distinct / Near && count <= distinct * Near

  /** The keys of a plan's joins, of its semi joins, and those compared with columns without statistics. */
  private final class Uses {
    val joined = mutable.ArrayBuffer.empty[(Origin, Origin)]
    val semiJoins = mutable.ArrayBuffer.empty[SemiJoin]
    val comparedWithUnknown = mutable.HashSet.empty[ExprId]

    /** Adds the keys of both sides of a join; one may have no origin. */
    def addJoin(left: Option[Origin], right: Option[Origin]): Unit =
      if (left.isDefined && right.isDefined) joined += left.get -> right.get
      else comparedWithUnknown ++= (left ++ right).map(_.column.exprId)
  }

  /** The columns that rows are grouped by, under all names that they have in the plan. */
  private def groupingColumns(plan: LogicalPlan): Set[ExprId] = {
    val sources = mutable.HashMap.empty[ExprId, Set[ExprId]].withDefaultValue(Set.empty)
    val grouped = mutable.HashSet.empty[ExprId]
    for (node <- plan) {
      addAliases(node, sources)
      node match {
        case aggregate: Aggregate =>
          aggregate.groupingExpressions.foreach(grouped ++= columnsOf(_))
        case expand: Expand =>
          expand.projections.flatten.foreach(grouped ++= columnsOf(_))
        case union: Union =>
          for {
            child <- union.children
            (out, in) <- union.output.zip(child.output)
          } sources(out.exprId) = sources(out.exprId) + in.exprId
        case _ =>
          ()
      }
    }
    withSources(grouped.toSet, sources)
  }

  private def columnsOf(expression: Expression): Iterable[ExprId] = expression.references.map(_.exprId)

  /** Adds the columns from which a node computes its new columns. */
  private def addAliases(node: LogicalPlan, sources: mutable.Map[ExprId, Set[ExprId]]): Unit =
    for {
      expression <- node.expressions
      named <- expression.collect { case alias: Alias => alias }
    } sources(named.exprId) = sources(named.exprId) ++ columnsOf(named.child)

  private def withSources(columns: Set[ExprId], sources: ExprId => Set[ExprId]): Set[ExprId] = {
    var (all, next) = (columns, columns)
    while (next.nonEmpty) {
      next = next.flatMap(sources) -- all
      all ++= next
    }
    all
  }

  /**
   * A column of a scan, or an expression over it and others, with the conditions on the scan.
   *
   * @param isJoined whether joins with other tables may have removed some of its rows
   */
  private final case class Origin(
      column: Attribute,
      leaf: LogicalPlan,
      conjuncts: Seq[Expression],
      isJoined: Boolean = false,
      expression: Option[Expression] = None)

  /** The origin of a key; None if its columns are not of one scan. */
  private def originOf(key: Expression, origins: Map[ExprId, Origin]): Option[Origin] = key match {
    case column: Attribute =>
      origins.get(column.exprId)
    case _ =>
      for {
        columnOrigins <- Indexed.all(columnsOf(key).toSeq.map(origins.get))
        if columnOrigins.nonEmpty && columnOrigins.forall(_.leaf eq columnOrigins.head.leaf)
      } yield {
        val expression = key.transform { case column: Attribute => origins(column.exprId).column }
        columnOrigins.head.copy(expression = Some(expression))
      }
  }

  /**
   * A semi join or an anti join: it keeps or removes the rows of a scan whose value is in another column.
   *
   * @param isIn whether it keeps these rows; otherwise it keeps the other rows
   */
  private final case class SemiJoin(column: Origin, values: Origin, isIn: Boolean, keepsNulls: Boolean)

  /** @param relationOf the statistics of a leaf's columns */
  def fromPlan(plan: LogicalPlan, relationOf: LogicalPlan => Option[RelationColumns]): JoinKeys = {
    val uses = new Uses
    follow(plan, Nil, uses)
    val keys = new Keys(relationOf)
    new JoinKeys(distinctCounts(uses, keys, groupingColumns(plan)), remainingShares(uses, keys))
  }

  /** The keys of a plan's joins. */
  private final class Keys(relationOf: LogicalPlan => Option[RelationColumns]) {
    private val keys = mutable.HashMap.empty[(ExprId, Option[Expression]), Option[JoinKey]]

    def find(origin: Origin): Option[JoinKey] = keys.getOrElseUpdate(
      (origin.column.exprId, origin.expression),
      relationOf(origin.leaf).flatMap(JoinKey.fromOrigin(origin, _)))
  }

  /** The distinct counts of keys. A key of several joins gets the least one: each other side gets its own. */
  private def distinctCounts(uses: Uses, keys: Keys, grouped: Set[ExprId]): Map[ExprId, Double] = {
    val counts = mutable.HashMap.empty[ExprId, Double]
    def add(origin: Origin, count: Double): Unit = {
      val column = origin.column.exprId
      counts(column) = math.min(count, counts.getOrElse(column, count))
    }
    def hasOtherUses(origin: Origin): Boolean =
      uses.comparedWithUnknown(origin.column.exprId) || grouped(origin.column.exprId)
    for {
      (left, right) <- uses.joined
      a <- keys.find(left)
      b <- keys.find(right)
    } {
      val share = a.share(b)
      val count = 1 / share
      val areJoinKeysOnly = !hasOtherUses(left) && !hasOtherUses(right)
      val distinct = math.max(a.values.distinct, b.values.distinct)
      if (share > 0 && (areJoinKeysOnly || isNear(count, distinct))) {
        add(left, count)
        add(right, count)
      }
    }
    counts.toMap
  }

  private def remainingShares(uses: Uses, keys: Keys): Map[ExprId, Double] = {
    val shares = mutable.HashMap.empty[ExprId, Double].withDefaultValue(1.0)
    for {
      semiJoin <- uses.semiJoins
      key <- keys.find(semiJoin.column)
      values <- keys.find(semiJoin.values)
    } {
      val share = key.remainingShare(values, semiJoin.isIn, semiJoin.keepsNulls)
      shares(semiJoin.column.column.exprId) *= share
    }
    shares.toMap
  }

  /** The origins of a plan's columns that are columns of a scan. Adds the uses of keys to `uses`. */
  private def follow(plan: LogicalPlan, above: Seq[Expression], uses: Uses): Map[ExprId, Origin] =
    plan match {
      case Filter(condition, child) =>
        follow(child, above ++ splitConjunctivePredicates(condition), uses)
      case leaf: LeafNode =>
        val origins = Indexed.entries(leaf.output)(column => column.exprId -> Origin(column, leaf, above))
        for (condition <- above) uses.semiJoins ++= fromSubquery(condition, origins)
        origins
      case Project(list, child) =>
        renamed(list, follow(child, Nil, uses))
      case join @ Join(_, _, LeftSemi | LeftAnti, _, _) =>
        followSemiJoin(join, uses)
      case join: Join =>
        followJoin(join, uses)
      case other =>
        for (child <- other.children) follow(child, Nil, uses)
        Map.empty
    }

  private def renamed(list: Seq[NamedExpression], below: Map[ExprId, Origin]): Map[ExprId, Origin] = {
    val origins = for {
      named <- list
      column <- columnOf(named)
      origin <- below.get(column.exprId)
    } yield named.exprId -> origin
    origins.toMap
  }

  /** The column that a projection passes on unchanged, perhaps under another name. */
  private def columnOf(named: NamedExpression): Option[Attribute] = named match {
    case column: Attribute =>
      Some(column)
    case Alias(column: Attribute, _) =>
      Some(column)
    case _ => None
  }

  private def followSemiJoin(join: Join, uses: Uses): Map[ExprId, Origin] = {
    val outer = follow(join.left, Nil, uses)
    val inner = follow(join.right, Nil, uses)
    for {
      Seq(EqualTo(a, b)) <- Some(conjunctsOf(join)) if isScan(join.left)
      column <- originOf(a, outer).orElse(originOf(b, outer))
      values <- originOf(b, inner).orElse(originOf(a, inner))
    } uses.semiJoins += SemiJoin(
      column,
      values,
      isIn = join.joinType == LeftSemi,
      keepsNulls = join.joinType == LeftAnti)
    joined(outer)
  }

  private def followJoin(join: Join, uses: Uses): Map[ExprId, Origin] = {
    val left = follow(join.left, Nil, uses)
    val right = follow(join.right, Nil, uses)
    // Spark estimates no other keys.
    for (EqualTo(a: Attribute, b: Attribute) <- conjunctsOf(join)) {
      val leftOrigin = left.get(a.exprId).orElse(left.get(b.exprId))
      val rightOrigin = right.get(b.exprId).orElse(right.get(a.exprId))
      uses.addJoin(leftOrigin, rightOrigin)
    }
    joined(left ++ right)
  }

  private def conjunctsOf(join: Join): Seq[Expression] =
    join.condition.toSeq.flatMap(splitConjunctivePredicates)

  private def joined(origins: Map[ExprId, Origin]): Map[ExprId, Origin] =
    for ((id, origin) <- origins) yield id -> origin.copy(isJoined = true)

  @scala.annotation.tailrec
  private def isScan(plan: LogicalPlan): Boolean = plan match {
    case _: LeafNode => true
    case _: Filter | _: Project =>
      isScan(plan.children.head)
    case _ => false
  }

  /** The semi join of IN or EXISTS with a sub-query: Spark makes it only after it has reordered joins. */
  private def fromSubquery(condition: Expression, origins: Map[ExprId, Origin]): Option[SemiJoin] =
    condition match {
      case Not(other) =>
        for (semiJoin <- fromSubquery(other, origins))
          yield semiJoin.copy(isIn = !semiJoin.isIn, keepsNulls = other.isInstanceOf[Exists])
      case InSubquery(Seq(a), query) if isUncorrelated(query) && query.plan.output.size == 1 =>
        semiJoin(a, query.plan.output.head, query.plan, origins)
      case ExistsEqual(a, b, plan) =>
        semiJoin(a, b, plan, origins).orElse(semiJoin(b, a, plan, origins))
      case _ => None
    }

  private def isUncorrelated(query: ListQuery): Boolean = query.outerAttrs.isEmpty && query.joinCond.isEmpty

  private object ExistsEqual {
    def unapply(exists: Exists): Option[(Expression, Expression, LogicalPlan)] =
      exists.joinCond match {
        case Seq(EqualTo(a, b)) =>
          Some((a, b, exists.plan))
        case _ => None
      }
  }

  private def semiJoin(
      a: Expression,
      b: Expression,
      subquery: LogicalPlan,
      origins: Map[ExprId, Origin]): Option[SemiJoin] =
    for {
      column <- originOf(a, origins)
      values <- originOf(b, follow(subquery, Nil, new Uses))
    } yield SemiJoin(column, values, isIn = true, keepsNulls = false)

  /**
   * A key of a join.
   *
   * @param values          the values that match the conditions on the key
   * @param otherConditions the conditions on other columns of the scan
   * @param isPartial       whether some condition or join of the scan cannot be estimated
   */
  private final class JoinKey(
      val values: ColumnHistogram,
      otherConditions: => FilterSelectivity,
      isPartial: Boolean) {
    private lazy val otherShare = otherConditions.share
    private def isEstimated: Boolean = !isPartial && otherConditions.isEstimated

    /** The probability that a matching row of this side and one of the other have the same value. */
    def share(other: JoinKey): Double = {
      val independent = JoinSelectivity.share(values, other.values)
      math.min(1.0, independent * correlation(other) * other.correlation(this))
    }

    /** The share of this side's rows whose value the other side has, or has not. */
    def remainingShare(other: JoinKey, isIn: Boolean, keepsNulls: Boolean): Double = {
      // Without an estimate of the other side, all rows of this side may be unmatched.
      if (isIn) matchingRows(other) / values.rows.max(1.0)
      else if (!other.isEstimated) 1.0
      else math.max(leastUnmatched(other), unmatched(other, keepsNulls))
    }

    private def matchingRows(other: JoinKey): Double =
      JoinSelectivity.matchingRows(values, other.values, other.otherShare)

    private def leastUnmatched(other: JoinKey): Double =
      if (values.isComplete && other.values.isComplete) 0.0
      else JoinKey.LeastUnmatched

    private def unmatched(other: JoinKey, keepsNulls: Boolean): Double = {
      val rows = math.max(1.0, values.rows)
      val nulls = if (keepsNulls) 0.0 else values.nulls
      math.max(0.0, rows - nulls - matchingRows(other)) / rows
    }

    /**
     * The factor by which rows that match the other conditions are more likely to have a value of the other
     * side than all rows. If the other side has only a narrow range of this side's values, the conditions are
     * assumed to select it.
     */
    private def correlation(other: JoinKey): Double = {
      val share = shareWithin(other.values)
      if (share <= 0 || share > JoinKey.Most) 1.0
      else math.min(1 / share, 1 / math.max(otherShare, JoinKey.Least))
    }

    /** The share of the values that lie between the other side's least and greatest value. */
    private def shareWithin(other: ColumnHistogram): Double =
      if (JoinKey.WithoutCommonAxis(values.dataType) || other.buckets.isEmpty || values.values <= 0) 1.0
      else values.between(other.buckets.head.from, other.last.until) / values.values
  }

  private object JoinKey {
    private val Least = 1e-6
    private val WithoutCommonAxis: Set[DataType] = Set(StringType, BinaryType)
    private[JoinKeys] val LeastUnmatched = 0.1 // when ranges of values are compared, not single values
    private val Most = 0.5 // a range of more of the values is not narrow

    def fromOrigin(origin: Origin, relation: RelationColumns): Option[JoinKey] = {
      val key = origin.expression match {
        case Some(expression) => relation.resolver.replaceIn(expression)
        case None => Some(origin.column)
      }
      key match {
        case Some(column: Attribute) =>
          fromColumn(origin, column, relation)
        case _ => None
      }
    }

    private def fromColumn(origin: Origin, column: Attribute, relation: RelationColumns): Option[JoinKey] = {
      val conjuncts = origin.conjuncts.map(relation.resolver.overColumns(_))
      val (onKey, onOthers) = conjuncts.filter(ValuePredicate.canEvaluate).partition(isOn(column, _))
      lazy val otherConditions = new FilterSelectivity(onOthers, relation.resolver, histograms(_, relation))
      for {
        key <- relation.resolver.key(column, Nil)
        unfiltered <- relation.histogram(key, column.dataType)
      } yield {
        // A condition that fails on a value is ignored.
        val remaining = ColumnPredicate.select(unfiltered, onKey, column).getOrElse(unfiltered)
        val isPartial = origin.isJoined || onKey.size + onOthers.size < origin.conjuncts.size
        new JoinKey(remaining, otherConditions, isPartial)
      }
    }

    private def isOn(column: Attribute, conjunct: Expression): Boolean =
      conjunct.references.size == 1 && conjunct.references.head.exprId == column.exprId

    private def histograms(
        columns: Seq[ColumnKey],
        relation: RelationColumns): Map[ColumnKey, ScanHistogram] = {
      val histograms = for {
        column <- columns
        histogram <- relation.histogram(column.key, column.dataType)
      } yield column -> ScanHistogram(histogram, isFromTable = true)
      histograms.toMap
    }
  }
}
