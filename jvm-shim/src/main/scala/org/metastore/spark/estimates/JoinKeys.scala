package org.metastore.spark.estimates

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate, Expand, Filter, Join, LeafNode, LogicalPlan, Project, Union
}
import org.apache.spark.sql.types.{BinaryType, DataType, StringType}
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import org.metastore.spark.pruning.{ExpressionColumns, ValuePredicate}
import org.metastore.spark.statistics.values.{Axis, Bucket, ColumnHistogram}

/** How the statistics know the columns of a scan. */
final class RelationColumns(
    val resolver: ExpressionColumns,
    val histogram: (String, DataType) => Option[ColumnHistogram])

/**
 * Distinct counts of join keys that make Spark's formula T(A) T(B) / max(V(A), V(B)) return the size of the join: with f the
 * counts of values on both sides, that is V = T(A) T(B) / sum f_A(v) f_B(v). They serve one query and are stored nowhere.
 */
final class JoinKeys private (counts: Map[ExprId, Double], found: Map[ExprId, Double]) {

  /** The count of a column; none for what is no key, or not known. */
  def of(column: ExprId): Option[Double] = counts.get(column)

  /** The share of a scan's rows, by one of its columns, that semi joins and anti joins on that column leave of it. */
  def leftOf(column: ExprId): Double = found.getOrElse(column, 1.0)
}

object JoinKeys extends PredicateHelper {
  val Unknown: JoinKeys = new JoinKeys(Map.empty, Map.empty)

  private val Near = 4 // times

  /** Whether a count serves where Spark takes it for that of the groups, or compares it with that of another join's side. */
  private def isNear(count: Double, distinct: Double): Boolean =
    count >= distinct / Near && count <= distinct * Near

  /** The keys that joins compare: with each other, and with columns of which nothing is known. */
  private final class Uses {
    val joined = mutable.ArrayBuffer.empty[(Origin, Origin)]
    val sought = mutable.ArrayBuffer.empty[Sought]
    val elsewhere = mutable.HashSet.empty[ExprId]
  }

  /** The columns that rows are grouped by, under all names that they have on their way there. */
  private def groupingColumns(plan: LogicalPlan): Set[ExprId] = {
    val sources = mutable.HashMap.empty[ExprId, Set[ExprId]].withDefaultValue(Set.empty)
    val grouped = mutable.HashSet.empty[ExprId]
    plan.foreach { node =>
      node.expressions.foreach(_.foreach {
        case named: Alias =>
          sources(named.exprId) = sources(named.exprId) ++ named.child.references.map(_.exprId)
        case _ => ()
      })
      node match {
        case aggregate: Aggregate =>
          grouped ++= aggregate.groupingExpressions.flatMap(_.references).map(_.exprId)
        case expand: Expand => grouped ++= expand.projections.flatten.flatMap(_.references).map(_.exprId)
        case union: Union => union.children.foreach { child =>
            union.output.zip(child.output).foreach { case (out, in) =>
              sources(out.exprId) = sources(out.exprId) + in.exprId
            }
          }
        case _ => ()
      }
    }
    var (found, next) = (grouped.toSet, grouped.toSet)
    while (next.nonEmpty) {
      next = next.flatMap(sources(_)) -- found
      found ++= next
    }
    found
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
      over: Option[Expression] = None)

  private def originOf(key: Expression, of: Map[ExprId, Origin]): Option[Origin] = key match {
    case column: Attribute => of.get(column.exprId)
    case _ =>
      val columns = key.references.toSeq.flatMap(column => of.get(column.exprId).map(column.exprId -> _))
      columns.headOption.collect {
        case (_, first) if columns.size == key.references.size && columns.forall(_._2.leaf eq first.leaf) =>
          val origins = columns.toMap
          first.copy(over = Some(key.transform { case column: Attribute => origins(column.exprId).column }))
      }
  }

  /** A scan's column whose values are looked for in another column; `isIn` whether rows stay that are found, or the others. */
  private final case class Sought(column: Origin, in: Origin, isIn: Boolean, keepsNulls: Boolean)

  /** @param known what the statistics know of a leaf's columns */
  def of(plan: LogicalPlan, known: LogicalPlan => Option[RelationColumns]): JoinKeys = {
    val uses = new Uses
    follow(plan, Nil, uses)
    val keys = mutable.HashMap.empty[(ExprId, Option[Expression]), Option[Key]]
    def keyOf(origin: Origin) =
      keys.getOrElseUpdate((origin.column.exprId, origin.over), known(origin.leaf).flatMap(Key.of(origin, _)))
    val elsewhere = uses.elsewhere ++ groupingColumns(plan)
    val found = uses.joined.toSeq.flatMap { case (left, right) =>
      for (a <- keyOf(left).toSeq; b <- keyOf(right).toSeq; share = a.share(b) if share > 0;
        isOwn = !Seq(left, right).exists(one => elsewhere(one.column.exprId))
        if isOwn || isNear(1 / share, math.max(a.values.distinct, b.values.distinct));
        one <- Seq(left, right))
        yield one.column.exprId -> 1 / share
    }
    // A key of several joins has the least of its counts: each of the other sides then decides its own.
    val left = for (one <- uses.sought.toSeq; a <- keyOf(one.column); b <- keyOf(one.in))
      yield one.column.column.exprId -> a.leftBy(b, one.isIn, one.keepsNulls)
    new JoinKeys(
      found.groupBy(_._1).map { case (id, of) => id -> of.map(_._2).min },
      left.groupBy(_._1).map { case (id, of) => id -> of.map(_._2).product })
  }

  /** Where a plan's columns come from, as far as their rows are those of a scan, joined or not; uses of them are noted. */
  private def follow(plan: LogicalPlan, above: Seq[Expression], uses: Uses): Map[ExprId, Origin] =
    plan match {
      case Filter(condition, child) => follow(child, above ++ splitConjunctivePredicates(condition), uses)
      case leaf: LeafNode =>
        val origins = leaf.output.map(column => column.exprId -> Origin(column, leaf, above)).toMap
        above.foreach(uses.sought ++= soughtBy(_, origins))
        origins
      case Project(list, child) =>
        val below = follow(child, Nil, uses)
        list.flatMap {
          case column: Attribute => below.get(column.exprId).map(column.exprId -> _)
          case renamed @ Alias(column: Attribute, _) => below.get(column.exprId).map(renamed.exprId -> _)
          case _ => Nil
        }.toMap
      case Join(left, right, kind @ (LeftSemi | LeftAnti), condition, _) =>
        val (outer, inner) = (follow(left, Nil, uses), follow(right, Nil, uses))
        condition.toSeq.flatMap(splitConjunctivePredicates) match {
          case Seq(EqualTo(a, b)) if isScan(left) =>
            for (x <- originOf(a, outer).orElse(originOf(b, outer));
              y <- originOf(b, inner).orElse(originOf(a, inner)))
              uses.sought += Sought(x, y, isIn = kind == LeftSemi, keepsNulls = kind == LeftAnti)
          case _ => ()
        }
        outer.map { case (id, origin) => id -> origin.copy(isJoined = true) }
      case join: Join =>
        val (left, right) = (follow(join.left, Nil, uses), follow(join.right, Nil, uses))
        join.condition.toSeq.flatMap(splitConjunctivePredicates).foreach {
          case EqualTo(a: Attribute, b: Attribute) => // Spark's estimator knows no other keys
            (
              left.get(a.exprId).orElse(left.get(b.exprId)),
              right.get(b.exprId).orElse(right.get(a.exprId))) match {
              case (Some(x), Some(y)) => uses.joined += x -> y
              case (x, y) => uses.elsewhere ++= (x ++ y).map(_.column.exprId)
            }
          case _ => ()
        }
        (left ++ right).map { case (id, origin) => id -> origin.copy(isJoined = true) }
      case other =>
        other.children.foreach(follow(_, Nil, uses))
        Map.empty
    }

  @scala.annotation.tailrec
  private def isScan(plan: LogicalPlan): Boolean = plan match {
    case _: LeafNode => true
    case Filter(_, child) => isScan(child)
    case Project(_, child) => isScan(child)
    case _ => false
  }

  /** What a condition looks for in a sub-query: Spark makes semi joins and anti joins of such only after joins are reordered. */
  private def soughtBy(condition: Expression, of: Map[ExprId, Origin]): Option[Sought] = condition match {
    case Not(other) =>
      soughtBy(other, of).map(one => one.copy(isIn = !one.isIn, keepsNulls = other.isInstanceOf[Exists]))
    case in: InSubquery if in.query.outerAttrs.isEmpty && in.query.joinCond.isEmpty =>
      (in.values, in.query.plan.output) match {
        case (Seq(a), Seq(b)) => soughtIn(a, b, in.query.plan, of)
        case _ => None
      }
    case exists: Exists => exists.joinCond match {
        case Seq(EqualTo(a, b)) =>
          soughtIn(a, b, exists.plan, of).orElse(soughtIn(b, a, exists.plan, of))
        case _ => None
      }
    case _ => None
  }

  private def soughtIn(
      a: Expression,
      b: Expression,
      in: LogicalPlan,
      of: Map[ExprId, Origin]): Option[Sought] =
    for (column <- originOf(a, of); values <- originOf(b, follow(in, Nil, new Uses)))
      yield Sought(column, values, isIn = true, keepsNulls = false)

  /** A key of a join: the values that the conditions on it leave; `unknown` whether nothing is known of other conditions, or of joins. */
  private final class Key(val values: ColumnHistogram, beside: => FilterSelectivity, unknown: Boolean) {
    private lazy val others = beside.share
    private def isWhole: Boolean = !unknown && beside.isEstimated

    /** How likely a row of this side and one of the other that their conditions leave have the same value. */
    def share(other: Key): Double =
      math.min(
        1.0,
        JoinSelectivity.share(values, other.values) * correlation(other) * other.correlation(this))

    /** The share of this side's rows whose value the other side has, or has not. */
    def leftBy(other: Key, isIn: Boolean, keepsNulls: Boolean): Double = {
      val rows = math.max(1.0, values.rows)
      lazy val found = JoinSelectivity.found(values, other.values, other.others)
      def unmatched = math.max(0.0, rows - (if (keepsNulls) 0.0 else values.nulls) - found) / rows
      // Of a side of which less comes than is known, more may stay without a match.
      if (isIn) found / rows
      else if (!other.isWhole) 1.0
      else math.max(if (values.isComplete && other.values.isComplete) 0.0 else Key.LeastUnmatched, unmatched)
    }

    /** How many times likelier than any row one that other conditions leave has a value of the other side. */
    private def correlation(other: Key): Double = {
      val among = within(other.values)
      if (among <= 0 || among > Key.Most) 1.0 else math.min(1 / among, 1 / math.max(others, Key.Least))
    }

    /** Of the rows that are not null the share between the other side's least value and its greatest. */
    private def within(other: ColumnHistogram): Double =
      if (values.dataType == StringType || values.dataType == BinaryType || other.buckets.isEmpty || values.values <= 0)
        1.0 // no common axis
      else values.between(other.buckets.head.from, other.buckets.iterator.map(_.until).max) / values.values
  }

  private object Key {
    private val Least = 1e-6
    private[JoinKeys] val LeastUnmatched = 0.1 // where ranges of values are compared, not all values
    private val Most = 0.5 // of rows that the other side may have: of more the conditions need not be asked

    def of(origin: Origin, known: RelationColumns): Option[Key] = origin.over match {
      case None => of(origin, origin.column, known)
      case Some(key) => known.resolver.replaceIn(key).collect { case column: Attribute => column }.flatMap(of(
          origin,
          _,
          known))
    }

    private def of(origin: Origin, column: Attribute, known: RelationColumns): Option[Key] = {
      val conjuncts =
        origin.conjuncts.map(condition => known.resolver.replaceIn(condition).getOrElse(condition))
      val (own, others) = conjuncts.filter(ValuePredicate.canEvaluate)
        .partition(c => c.references.size == 1 && c.references.head.exprId == column.exprId)
      lazy val beside = new FilterSelectivity(
        others,
        known.resolver,
        _.flatMap(asked =>
          known.histogram(asked.key, asked.dataType).map(found => asked -> ((found, true)))).toMap)
      for {
        key <- known.resolver.key(column, Nil)
        whole <- known.histogram(key, column.dataType)
      } yield {
        // as if there were no condition on it
        val kept = ColumnPredicate.select(whole, own, column).getOrElse(whole)
        new Key(kept, beside, unknown = origin.isJoined || own.size + others.size < origin.conjuncts.size)
      }
    }
  }
}

/** How likely a row of one column and a row of another have the same value. */
private[estimates] object JoinSelectivity {
  private val MostPairs = 1 << 20 // of buckets: there are more only where thousands of values begin alike

  /** The share of all pairs of rows: T(A) T(B) times it is what joining them gives; 0 where that takes too long to find. */
  def share(one: ColumnHistogram, other: ColumnHistogram): Double =
    if (one.rows <= 0 || other.rows <= 0) 0
    else one.derived(other)(Double.box(pairs(one, other) / one.rows / other.rows)).doubleValue

  /** How many rows of one have a value that the other has too; all of them where that takes too long to find. */
  def found(one: ColumnHistogram, other: ColumnHistogram, share: Double): Double = {
    val (left, right) = comparable(one, other)
    val byBuckets = sum(left, right) { (a, b) =>
      rowsFound(a, b, left, right) * ScanStatistics.expectDistinct(b.distinct, b.rows, share) / math.max(
        1.0,
        b.distinct)
    }.getOrElse(one.values)
    math.min(one.values, byBuckets) + (if (other.nans > 0) one.nans else 0)
  }

  private def pairs(one: ColumnHistogram, other: ColumnHistogram): Double = {
    val (left, right) = comparable(one, other)
    sum(left, right)((a, b) => rowsFound(a, b, left, right) * b.rows / b.distinct).getOrElse(
      0.0) + one.nans * other.nans
  }

  /** Both on one axis: that of texts depends on what all begin with. */
  private def comparable(one: ColumnHistogram, other: ColumnHistogram): (ColumnHistogram, ColumnHistogram) = {
    val ends =
      Seq(one, other).filter(_.buckets.nonEmpty).flatMap(h => Seq(h.buckets.head.lo, h.buckets.last.hi))
    if (!ends.forall(_.isInstanceOf[UTF8String])) (one, other)
    else {
      val texts = ends.map(_.asInstanceOf[UTF8String]).sortWith(isLess)
      val axis = Axis.of(one.dataType, texts.headOption, texts.lastOption)
      (one.on(axis), other.on(axis))
    }
  }

  // Spark forbids `compareTo`, which takes no collation into account, where it is tested; these texts have none.
  private def isLess(one: UTF8String, other: UTF8String): Boolean =
    ByteArray.compareBinary(one.getBytes, other.getBytes) < 0

  /** Over all buckets that meet; none where these are too many. */
  private def sum(
      one: ColumnHistogram,
      other: ColumnHistogram)(of: (Bucket, Bucket) => Double): Option[Double] = {
    var (found, first, compared) = (0.0, 0, 0)
    for (a <- one.buckets if compared <= MostPairs) {
      while (first < other.buckets.length && other.buckets(first).until < a.from) first += 1
      var next = first
      while (next < other.buckets.length && other.buckets(next).from <= a.until && compared <= MostPairs) {
        found += of(a, other.buckets(next))
        next += 1
        compared += 1
      }
    }
    if (compared > MostPairs) None else Some(found)
  }

  // The values of a range are taken to be among those of the other side, as those of a foreign key are: of two ranges all
  // values of that with fewer are.
  private def rowsFound(a: Bucket, b: Bucket, one: ColumnHistogram, other: ColumnHistogram): Double =
    if (a.isSingle && b.isSingle) { if (isSame(a, b)) a.rows else 0 }
    else if (a.isSingle) {
      if (b.from < a.from && a.from <= b.until && !other.hasSingle(a.from, a.lo)) a.rows else 0
    } else if (b.isSingle) {
      if (a.from < b.from && b.from <= a.until && !one.hasSingle(b.from, b.lo)) a.rows / a.distinct else 0
    } else {
      val (left, right) = (part(a, b), part(b, a))
      if (left <= 0 || right <= 0) 0
      else left * a.rows * math.min(1.0, right * b.distinct / (left * a.distinct))
    }

  private def isSame(a: Bucket, b: Bucket): Boolean = a.from == b.from && ((a.lo, b.lo) match {
    case (x: UTF8String, y: UTF8String) => x == y
    case _ => true
  })

  /** The share of a range that the other one covers. */
  private def part(of: Bucket, by: Bucket): Double =
    if (of.until <= of.from) 1
    else (math.min(of.until, by.until) - math.max(of.from, by.from)) / (of.until - of.from)
}
