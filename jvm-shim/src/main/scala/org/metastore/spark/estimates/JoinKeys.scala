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

/** The columns of a scan in the statistics. */
final class RelationColumns(
    val resolver: ExpressionColumns,
    val histogram: (String, DataType) => Option[ColumnHistogram])

/**
 * Distinct counts of join keys that make Spark's formula T(A) T(B) / max(V(A), V(B)) return the size of the join: with f the
 * counts of values on both sides, that is V = T(A) T(B) / sum f_A(v) f_B(v). They serve one query and are stored nowhere.
 */
final class JoinKeys private (counts: Map[ExprId, Double], shares: Map[ExprId, Double]) {

  /** The distinct count of a column; None if it is no key, or nothing is known of it. */
  def distinctCount(column: ExprId): Option[Double] = counts.get(column)

  /** The share of a scan's rows, by one of its columns, that semi joins and anti joins on that column leave of it. */
  def remainingShare(column: ExprId): Double = shares.getOrElse(column, 1.0)
}

object JoinKeys extends PredicateHelper {
  val Unknown: JoinKeys = new JoinKeys(Map.empty, Map.empty)

  private val Near = 4 // times

  /** Whether a count is near enough to the true one to serve Spark's other estimates as well, such as that of GROUP BY. */
  private def isNear(count: Double, distinct: Double): Boolean =
    count >= distinct / Near && count <= distinct * Near

  /** The keys of joins: of both sides, of semi joins, and those compared with columns of which nothing is known. */
  private final class Uses {
    val joined = mutable.ArrayBuffer.empty[(Origin, Origin)]
    val sought = mutable.ArrayBuffer.empty[Sought]
    val elsewhere = mutable.HashSet.empty[ExprId]

    /** Adds a key of both sides of a join, or the known one where the other is unknown. */
    def addJoin(left: Option[Origin], right: Option[Origin]): Unit =
      if (left.isDefined && right.isDefined) joined += left.get -> right.get
      else elsewhere ++= (left ++ right).map(_.column.exprId)
  }

  /** The columns that rows are grouped by, under every name that they have in the plan. */
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

  /** Adds which columns the new columns of a node are made of. */
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
   * A column of a scan, or an expression over it and others, with the conditions on the scan; `isJoined` where other tables may have
   * taken some of its rows.
   */
  private final case class Origin(
      column: Attribute,
      leaf: LogicalPlan,
      conjuncts: Seq[Expression],
      isJoined: Boolean = false,
      expression: Option[Expression] = None)

  /** Where a key comes from: all its columns are of one scan. */
  private def originOf(key: Expression, origins: Map[ExprId, Origin]): Option[Origin] = key match {
    case column: Attribute =>
      origins.get(column.exprId)
    case _ =>
      for {
        ofColumns <- Indexed.all(columnsOf(key).toSeq.map(origins.get))
        if ofColumns.nonEmpty && ofColumns.forall(_.leaf eq ofColumns.head.leaf)
      } yield {
        val expression = key.transform { case column: Attribute => origins(column.exprId).column }
        ofColumns.head.copy(expression = Some(expression))
      }
  }

  /** A scan's column whose values are looked for in another column; `isIn` whether rows stay that are found, or the others. */
  private final case class Sought(column: Origin, in: Origin, isIn: Boolean, keepsNulls: Boolean)

  /** @param known what the statistics know of a leaf's columns */
  def fromPlan(plan: LogicalPlan, known: LogicalPlan => Option[RelationColumns]): JoinKeys = {
    val uses = new Uses
    follow(plan, Nil, uses)
    val keys = new Keys(known)
    new JoinKeys(distinctCounts(uses, keys, groupingColumns(plan)), remainingShares(uses, keys))
  }

  /** The keys of a plan's joins. */
  private final class Keys(known: LogicalPlan => Option[RelationColumns]) {
    private val keys = mutable.HashMap.empty[(ExprId, Option[Expression]), Option[JoinKey]]

    def find(origin: Origin): Option[JoinKey] = keys.getOrElseUpdate(
      (origin.column.exprId, origin.expression),
      known(origin.leaf).flatMap(JoinKey.fromOrigin(origin, _)))
  }

  /** A key of several joins has the least of its counts: each of the other sides then decides its own. */
  private def distinctCounts(uses: Uses, keys: Keys, grouped: Set[ExprId]): Map[ExprId, Double] = {
    val counts = mutable.HashMap.empty[ExprId, Double]
    def add(origin: Origin, count: Double): Unit = {
      val column = origin.column.exprId
      counts(column) = math.min(count, counts.getOrElse(column, count))
    }
    def isElsewhere(origin: Origin): Boolean =
      uses.elsewhere(origin.column.exprId) || grouped(origin.column.exprId)
    for {
      (left, right) <- uses.joined
      a <- keys.find(left)
      b <- keys.find(right)
    } {
      val share = a.share(b)
      val count = 1 / share
      val isOwn = !isElsewhere(left) && !isElsewhere(right)
      if (share > 0 && (isOwn || isNear(count, math.max(a.values.distinct, b.values.distinct)))) {
        add(left, count)
        add(right, count)
      }
    }
    counts.toMap
  }

  private def remainingShares(uses: Uses, keys: Keys): Map[ExprId, Double] = {
    val shares = mutable.HashMap.empty[ExprId, Double].withDefaultValue(1.0)
    for {
      sought <- uses.sought
      a <- keys.find(sought.column)
      b <- keys.find(sought.in)
    } shares(sought.column.column.exprId) *= a.remainingShare(b, sought.isIn, sought.keepsNulls)
    shares.toMap
  }

  /** The origins of a plan's columns, as far as their rows are those of a scan, joined or not; adds the uses of keys to `uses`. */
  private def follow(plan: LogicalPlan, above: Seq[Expression], uses: Uses): Map[ExprId, Origin] =
    plan match {
      case Filter(condition, child) =>
        follow(child, above ++ splitConjunctivePredicates(condition), uses)
      case leaf: LeafNode =>
        val origins = Indexed.entries(leaf.output)(column => column.exprId -> Origin(column, leaf, above))
        above.foreach(uses.sought ++= soughtBy(_, origins))
        origins
      case Project(list, child) =>
        renamed(list, follow(child, Nil, uses))
      case join @ Join(_, _, LeftSemi | LeftAnti, _, _) =>
        followSemiJoin(join, uses)
      case join: Join =>
        followJoin(join, uses)
      case other =>
        other.children.foreach(follow(_, Nil, uses))
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
    } uses.sought += Sought(
      column,
      values,
      isIn = join.joinType == LeftSemi,
      keepsNulls = join.joinType == LeftAnti)
    joined(outer)
  }

  private def followJoin(join: Join, uses: Uses): Map[ExprId, Origin] = {
    val left = follow(join.left, Nil, uses)
    val right = follow(join.right, Nil, uses)
    // Spark's estimator knows no other keys.
    for (EqualTo(a: Attribute, b: Attribute) <- conjunctsOf(join)) {
      val ofLeft = left.get(a.exprId).orElse(left.get(b.exprId))
      val ofRight = right.get(b.exprId).orElse(right.get(a.exprId))
      uses.addJoin(ofLeft, ofRight)
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

  /** The values that IN or EXISTS looks for in a sub-query: Spark makes semi joins of these only after joins are reordered. */
  private def soughtBy(condition: Expression, origins: Map[ExprId, Origin]): Option[Sought] =
    condition match {
      case Not(other) =>
        for (sought <- soughtBy(other, origins))
          yield sought.copy(isIn = !sought.isIn, keepsNulls = other.isInstanceOf[Exists])
      case InSubquery(Seq(a), query) if isAlone(query) && query.plan.output.size == 1 =>
        soughtIn(a, query.plan.output.head, query.plan, origins)
      case ExistsEqual(a, b, plan) =>
        soughtIn(a, b, plan, origins).orElse(soughtIn(b, a, plan, origins))
      case _ => None
    }

  /** Whether a sub-query reads nothing of the query around it. */
  private def isAlone(query: ListQuery): Boolean = query.outerAttrs.isEmpty && query.joinCond.isEmpty

  private object ExistsEqual {
    def unapply(exists: Exists): Option[(Expression, Expression, LogicalPlan)] =
      exists.joinCond match {
        case Seq(EqualTo(a, b)) =>
          Some((a, b, exists.plan))
        case _ => None
      }
  }

  private def soughtIn(
      a: Expression,
      b: Expression,
      in: LogicalPlan,
      origins: Map[ExprId, Origin]): Option[Sought] =
    for {
      column <- originOf(a, origins)
      values <- originOf(b, follow(in, Nil, new Uses))
    } yield Sought(column, values, isIn = true, keepsNulls = false)

  /** A key of a join: the values that the conditions on it leave; `unknown` where some condition or join cannot be estimated. */
  private final class JoinKey(val values: ColumnHistogram, beside: => FilterSelectivity, unknown: Boolean) {
    private lazy val others = beside.share
    private def isWhole: Boolean = !unknown && beside.isEstimated

    /** How likely a row of this side and one of the other that their conditions leave have the same value. */
    def share(other: JoinKey): Double = {
      val independent = JoinSelectivity.share(values, other.values)
      math.min(1.0, independent * correlation(other) * other.correlation(this))
    }

    /** The share of this side's rows whose value the other side has, or has not. */
    def remainingShare(other: JoinKey, isIn: Boolean, keepsNulls: Boolean): Double = {
      // Of a side of which less comes than is known, more may stay without a match.
      if (isIn) matchingRows(other) / values.rows.max(1.0)
      else if (!other.isWhole) 1.0
      else math.max(leastUnmatched(other), unmatched(other, keepsNulls))
    }

    private def matchingRows(other: JoinKey): Double =
      JoinSelectivity.matchingRows(values, other.values, other.others)

    private def leastUnmatched(other: JoinKey): Double =
      if (values.isComplete && other.values.isComplete) 0.0
      else JoinKey.LeastUnmatched

    private def unmatched(other: JoinKey, keepsNulls: Boolean): Double = {
      val rows = math.max(1.0, values.rows)
      val nulls = if (keepsNulls) 0.0 else values.nulls
      math.max(0.0, rows - nulls - matchingRows(other)) / rows
    }

    /** How many times likelier a row that the other conditions leave has a value of the other side than any row has. */
    private def correlation(other: JoinKey): Double = {
      val among = within(other.values)
      if (among <= 0 || among > JoinKey.Most) 1.0
      else math.min(1 / among, 1 / math.max(others, JoinKey.Least))
    }

    /** Of the rows that are not null the share between the other side's least value and its greatest. */
    private def within(other: ColumnHistogram): Double =
      if (JoinKey.WithoutCommonAxis(values.dataType) || other.buckets.isEmpty || values.values <= 0) 1.0
      else values.between(other.buckets.head.from, other.last.until) / values.values
  }

  private object JoinKey {
    private val Least = 1e-6
    private val WithoutCommonAxis: Set[DataType] = Set(StringType, BinaryType)
    private[JoinKeys] val LeastUnmatched = 0.1 // where ranges of values are compared, not all values
    private val Most = 0.5 // of rows that the other side may have: of more the conditions need not be asked

    def fromOrigin(origin: Origin, known: RelationColumns): Option[JoinKey] = {
      val key = origin.expression.fold(Option[Expression](origin.column))(known.resolver.replaceIn)
      key match {
        case Some(column: Attribute) =>
          fromColumn(origin, column, known)
        case _ => None
      }
    }

    private def fromColumn(origin: Origin, column: Attribute, known: RelationColumns): Option[JoinKey] = {
      val conjuncts = origin.conjuncts.map(known.resolver.overColumns(_))
      val (own, others) = conjuncts.filter(ValuePredicate.canEvaluate).partition(isOn(column, _))
      lazy val beside = new FilterSelectivity(others, known.resolver, histograms(_, known))
      for {
        key <- known.resolver.key(column, Nil)
        whole <- known.histogram(key, column.dataType)
      } yield {
        // as if there were no condition on it
        val remaining = ColumnPredicate.select(whole, own, column).getOrElse(whole)
        val unknown = origin.isJoined || own.size + others.size < origin.conjuncts.size
        new JoinKey(remaining, beside, unknown)
      }
    }

    private def isOn(column: Attribute, conjunct: Expression): Boolean =
      conjunct.references.size == 1 && conjunct.references.head.exprId == column.exprId

    private def histograms(
        columns: Seq[ColumnKey],
        known: RelationColumns): Map[ColumnKey, KnownHistogram] = {
      val histograms = for {
        column <- columns
        histogram <- known.histogram(column.key, column.dataType)
      } yield column -> KnownHistogram(histogram, ofTable = true)
      histograms.toMap
    }
  }
}
