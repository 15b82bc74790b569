package org.metastore.spark.cardinality

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Filter, Join, LeafNode, LogicalPlan, Project, Union}
import org.apache.spark.sql.types.DataType

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
    val values = mutable.HashMap.empty[ExprId, Option[ColumnHistogram]]
    def valuesOf(origin: Origin) = values.getOrElseUpdate(origin.column.exprId, known(origin.leaf).flatMap(keptBy(origin, _)))
    val elsewhere = uses.elsewhere ++ uncounted(plan)
    val found = uses.joined.toSeq.flatMap { case (left, right) =>
      for (a <- valuesOf(left).toSeq; b <- valuesOf(right).toSeq; share = MatchingRows.share(a, b) if share > 0;
          isOwn = !Seq(left, right).exists(one => elsewhere(one.column.exprId))
          if isOwn || isNear(1 / share, math.max(a.distinct, b.distinct)); one <- Seq(left, right))
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

  /** The values of a key that the conditions on it leave. */
  private def keptBy(origin: Origin, known: KnownColumns): Option[ColumnHistogram] =
    for {
      key <- known.resolver.key(origin.column, Nil)
      whole <- known.histogram(key, origin.column.dataType)
    } yield {
      val own = origin.conjuncts.filter(c => ColumnPredicate.canEvaluate(c) && c.references.size == 1 && c.references.head.exprId == origin.column.exprId)
      try own.reduceOption(And(_, _)).fold(whole)(new ColumnPredicate(_, origin.column).of(whole))
      catch { case Failed(_) => whole } // as if there were no condition on it
    }
}
