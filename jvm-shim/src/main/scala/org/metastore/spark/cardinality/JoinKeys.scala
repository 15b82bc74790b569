package org.metastore.spark.cardinality

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, Join, LeafNode, LogicalPlan, Project}
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

  private val MostGroups = 4 // times as many as Spark is told: it takes the count of a key for that of its groups

  /** The keys that joins compare, and the columns that rows are grouped by. */
  private final class Uses {
    val joined = mutable.ArrayBuffer.empty[(Origin, Origin)]
    val grouped = mutable.HashSet.empty[ExprId]
  }

  /** A column of a scan, with the conditions on the scan. */
  private final case class Origin(column: Attribute, leaf: LogicalPlan, conjuncts: Seq[Expression])

  /** @param known what the statistics know of a leaf's columns */
  def of(plan: LogicalPlan, known: LogicalPlan => Option[KnownColumns]): JoinKeys = {
    val uses = new Uses
    follow(plan, Nil, uses)
    val values = mutable.HashMap.empty[ExprId, Option[ColumnHistogram]]
    def valuesOf(origin: Origin) = values.getOrElseUpdate(origin.column.exprId, known(origin.leaf).flatMap(keptBy(origin, _)))
    val found = uses.joined.toSeq.flatMap { case (left, right) =>
      for (a <- valuesOf(left).toSeq; b <- valuesOf(right).toSeq; share = MatchingRows.share(a, b) if share > 0;
          isGrouped = Seq(left, right).exists(one => uses.grouped(one.column.exprId))
          if !isGrouped || 1 / share >= math.min(a.distinct, b.distinct) / MostGroups; one <- Seq(left, right))
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
        case EqualTo(Key(a), Key(b)) =>
          for (x <- left.get(a).orElse(left.get(b)); y <- right.get(b).orElse(right.get(a))) uses.joined += x -> y
        case _ => ()
      }
      left ++ right
    case aggregate: Aggregate =>
      val below = follow(aggregate.child, Nil, uses)
      uses.grouped ++= aggregate.groupingExpressions.flatMap(_.references).flatMap(a => below.get(a.exprId)).map(_.column.exprId)
      Map.empty
    case other =>
      other.children.foreach(follow(_, Nil, uses))
      Map.empty
  }

  /** A column, or one that is widened. */
  private object Key {
    def unapply(expression: Expression): Option[ExprId] = expression match {
      case column: Attribute => Some(column.exprId)
      case cast: Cast if Cast.canUpCast(cast.child.dataType, cast.dataType) => unapply(cast.child)
      case _ => None
    }
  }

  /** The values of a key that the conditions on it leave. */
  private def keptBy(origin: Origin, known: KnownColumns): Option[ColumnHistogram] =
    for {
      key <- known.resolver.key(origin.column, Nil)
      whole <- known.histogram(key, origin.column.dataType)
    } yield {
      val own = origin.conjuncts.filter(c => c.deterministic && c.references.size == 1 && c.references.head.exprId == origin.column.exprId)
      try own.reduceOption(And(_, _)).fold(whole)(new ColumnPredicate(_, origin.column).of(whole))
      catch { case NonFatal(_) => whole } // as if there were no condition on it
    }
}
