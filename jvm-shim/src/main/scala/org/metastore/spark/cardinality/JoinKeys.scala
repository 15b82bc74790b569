package org.metastore.spark.cardinality

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Filter, Join, LeafNode, LogicalPlan, Project, Union}
import org.apache.spark.sql.types.{BinaryType, DataType, StringType}

import org.metastore.spark.pruning.ColumnResolver
import org.metastore.spark.store.ColumnHistogram

/** How the statistics know the columns of a scan. */
final class KnownColumns(val resolver: ColumnResolver, val histogram: (String, DataType) => Option[ColumnHistogram])

/**
 * Distinct counts of join keys that make Spark's formula T(A) T(B) / max(V(A), V(B)) return the size of the join: with f the
 * counts of values on both sides, that is V = T(A) T(B) / sum f_A(v) f_B(v). They serve one query and are stored nowhere.
 */
final class JoinKeys private (counts: Map[ExprId, Double]) {

  /** The count of a column; none for what is no key, or not known. */
  def of(column: ExprId): Option[Double] = counts.get(column)
}

object JoinKeys extends PredicateHelper {
  val Unknown: JoinKeys = new JoinKeys(Map.empty)

  private val Near = 4 // times

  /** Whether a count serves where Spark takes it for that of the groups, or compares it with that of another join's side. */
  private def isNear(count: Double, distinct: Double): Boolean = count >= distinct / Near && count <= distinct * Near

  /** The keys that joins compare: with each other, and with columns of which nothing is known. */
  private final class Uses {
    val joined = mutable.ArrayBuffer.empty[(Origin, Origin)]
    val elsewhere = mutable.HashSet.empty[ExprId]
  }

  /** The columns that rows are grouped by, under all names that they have on their way there. */
  private def uncounted(plan: LogicalPlan): Set[ExprId] = {
    val sources = mutable.HashMap.empty[ExprId, Set[ExprId]].withDefaultValue(Set.empty)
    val grouped = mutable.HashSet.empty[ExprId]
    plan.foreach { node =>
      node.expressions.foreach(_.foreach {
        case named: Alias => sources(named.exprId) = sources(named.exprId) ++ named.child.references.map(_.exprId)
        case _ => ()
      })
      node match {
        case aggregate: Aggregate => grouped ++= aggregate.groupingExpressions.flatMap(_.references).map(_.exprId)
        case expand: Expand => grouped ++= expand.projections.flatten.flatMap(_.references).map(_.exprId)
        case union: Union => union.children.foreach { child =>
          union.output.zip(child.output).foreach { case (out, in) => sources(out.exprId) = sources(out.exprId) + in.exprId }
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

  /** A column of a scan, with the conditions on the scan. */
  private final case class Origin(column: Attribute, leaf: LogicalPlan, conjuncts: Seq[Expression])

  /** @param known what the statistics know of a leaf's columns */
  def of(plan: LogicalPlan, known: LogicalPlan => Option[KnownColumns]): JoinKeys = {
    val uses = new Uses
    follow(plan, Nil, uses)
    val keys = mutable.HashMap.empty[ExprId, Option[Key]]
    def keyOf(origin: Origin) = keys.getOrElseUpdate(origin.column.exprId, known(origin.leaf).flatMap(Key.of(origin, _)))
    val elsewhere = uses.elsewhere ++ uncounted(plan)
    val found = uses.joined.toSeq.flatMap { case (left, right) =>
      for (a <- keyOf(left).toSeq; b <- keyOf(right).toSeq; share = a.share(b) if share > 0; isOwn = !Seq(left, right).exists(one => elsewhere(one.column.exprId))
          if isOwn || isNear(1 / share, math.max(a.values.distinct, b.values.distinct)); one <- Seq(left, right))
        yield one.column.exprId -> 1 / share
    }
    // A key of several joins has the least of its counts: each of the other sides then decides its own.
    new JoinKeys(found.groupBy(_._1).map { case (id, of) => id -> of.map(_._2).min })
  }

  /** Where a plan's columns come from, as far as their rows are those of a scan, joined or not; uses of them are noted. */
  private def follow(plan: LogicalPlan, above: Seq[Expression], uses: Uses): Map[ExprId, Origin] = plan match {
    case Filter(condition, child) => follow(child, above ++ splitConjunctivePredicates(condition), uses)
    case leaf: LeafNode => leaf.output.map(column => column.exprId -> Origin(column, leaf, above)).toMap
    case Project(list, child) =>
      val below = follow(child, Nil, uses)
      list.flatMap {
        case column: Attribute => below.get(column.exprId).map(column.exprId -> _)
        case renamed @ Alias(column: Attribute, _) => below.get(column.exprId).map(renamed.exprId -> _)
        case _ => Nil
      }.toMap
    case join: Join =>
      val (left, right) = (follow(join.left, Nil, uses), follow(join.right, Nil, uses))
      join.condition.toSeq.flatMap(splitConjunctivePredicates).foreach {
        case EqualTo(a: Attribute, b: Attribute) => // Spark's estimator knows no other keys
          (left.get(a.exprId).orElse(left.get(b.exprId)), right.get(b.exprId).orElse(right.get(a.exprId))) match {
            case (Some(x), Some(y)) => uses.joined += x -> y
            case (x, y) => uses.elsewhere ++= (x ++ y).map(_.column.exprId)
          }
        case _ => ()
      }
      left ++ right
    case other =>
      other.children.foreach(follow(_, Nil, uses))
      Map.empty
  }

  /**
   * A key of a join.
   *
   * @param values those that the conditions on it leave
   * @param others what is known of the rows that conditions on other columns leave: their share
   */
  private final class Key(val values: ColumnHistogram, others: => Double) {

    /** How likely a row of this side and one of the other that their conditions leave have the same value. */
    def share(other: Key): Double = math.min(1.0, MatchingRows.share(values, other.values) * sought(other) * other.sought(this))

    /**
     * How many times likelier than any row one that other conditions leave has a value of the other side. Those who ask for a year
     * of a calendar of two centuries, and for what was sold in it, mean one of the years with sales: the conditions take
     * away what lies beyond the other side's values before they take any that lies among them.
     */
    private def sought(other: Key): Double = {
      val among = within(other.values)
      if (among <= 0 || among > Key.Most) 1.0 else math.min(1 / among, 1 / math.max(others, Key.Least))
    }

    /** Of the rows that are not null the share between the other side's least value and its greatest. */
    private def within(other: ColumnHistogram): Double =
      if (values.dataType == StringType || values.dataType == BinaryType || other.buckets.isEmpty || values.values <= 0) 1.0 // no common axis
      else values.between(other.buckets.head.from, other.buckets.iterator.map(_.until).max) / values.values
  }

  private object Key {
    private val Least = 1e-6
    private val Most = 0.5 // of rows that the other side may have: of more the conditions need not be asked

    def of(origin: Origin, known: KnownColumns): Option[Key] = {
      val (own, others) = origin.conjuncts.filter(ColumnPredicate.canEvaluate)
        .partition(c => c.references.size == 1 && c.references.head.exprId == origin.column.exprId)
      lazy val beside = new ScanFilter(
        others, known.resolver, _.flatMap(asked => known.histogram(asked.key, asked.dataType).map(found => asked -> ((found, true)))).toMap)
      for {
        key <- known.resolver.key(origin.column, Nil)
        whole <- known.histogram(key, origin.column.dataType)
      } yield {
        val kept =
          try own.reduceOption(And(_, _)).fold(whole)(new ColumnPredicate(_, origin.column).of(whole))
          catch { case Failed(_) => whole } // as if there were no condition on it
        new Key(kept, beside.share)
      }
    }
  }
}
