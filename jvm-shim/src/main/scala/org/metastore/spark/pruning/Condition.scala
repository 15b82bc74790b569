package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions
import org.apache.spark.sql.catalyst.expressions.{
  Expression, OuterReference, PlanExpression, UserDefinedExpression
}
import org.apache.spark.sql.types.DataType

import org.metastore.spark.pruning.Condition.{And, Evaluated, Member, NaNTest, NullTest, Or}
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.columns.Bounds
import org.metastore.spark.statistics.objects.DoubleOrder

/** A condition in negation normal form: NOT is gone, because it was pushed into the leaves when the conjunct was compiled. */
private[pruning] sealed trait Condition {

  /** What AND and OR join. */
  final def leaves: Seq[Condition] = this match {
    case And(left, right) => left.leaves ++ right.leaves
    case Or(left, right) => left.leaves ++ right.leaves
    case leaf => Seq(leaf)
  }
}

private[pruning] object Condition {
  final case class And(left: Condition, right: Condition) extends Condition
  final case class Or(left: Condition, right: Condition) extends Condition

  /** True of every row. */
  case object Always extends Condition

  /** True of no row: false, or NULL. */
  case object Never extends Condition

  /** Nothing can be said. */
  final case class Unknown(reason: Reason) extends Condition

  /** `column IS NULL`, or `IS NOT NULL`. */
  final case class NullTest(column: ColumnReference, isNull: Boolean) extends Condition

  /** `isnan(column)`, or its negation, which is true of NULL. */
  final case class NaNTest(column: ColumnReference, isNaN: Boolean) extends Condition

  /** The term is not NULL, and in the set (`inside`) or not in it. */
  final case class Member(term: Term, set: ValueSet, inside: Boolean) extends Condition

  /** What Catalyst's own expression says of single values of the one column that it reads; of bounds `rules` say the same or less. */
  final case class Evaluated(
      rules: Condition,
      column: ColumnReference,
      condition: Expression,
      leaf: Expression)
    extends Condition

  /** One term against another term of the same row. */
  final case class Related(left: Term, relation: Relation, right: Term) extends Condition

  /** A condition that holds wherever `predicate` does, and says no more: matches of it prove nothing. */
  def implies(predicate: Condition, reason: Reason): Condition = And(predicate, Unknown(reason))
}

/** How two terms of a row are compared. */
private[pruning] sealed trait Relation

private[pruning] object Relation {
  case object Less extends Relation
  case object LessOrEqual extends Relation
  case object Equal extends Relation
  case object NotEqual extends Relation
  case object NullSafeEqual extends Relation
}

/** A column seen through monotone steps; `dataType` is the type of the result. NULL exactly where the column is. */
private[pruning] final case class Term(column: ColumnReference, dataType: DataType, steps: List[Step]) {

  /** Bounds of the term's values, from those of the column. */
  def bounds(column: Bounds): Bounds =
    steps.foldLeft(column)((bounds, step) => step(bounds))

  def isColumn: Boolean = steps.isEmpty

  def after(result: DataType, more: Step*): Term = Term(column, result, steps ++ more)
}

/** A conjunct or a part of one in negation normal form, and the column that it reads if that is one alone. */
private[pruning] final case class Part(rules: Condition, expression: Expression, leaf: Option[Expression])

/** Compiles a conjunct into negation normal form. */
private[pruning] final class Conjuncts(columns: ColumnLookup, allowance: EvaluationAllowance) {
  import Conjuncts.isDecided

  private val leaves = new LeafPredicates(columns, allowance)

  def compile(conjunct: Expression): Part = Conjuncts.refusal(conjunct) match {
    case Some(reason) => Part(Condition.Unknown(reason), conjunct, None)
    case None => normal(conjunct, negated = false)
  }

  /** What follows from several conjuncts on the same column, each of which leaves values open, and from which. */
  def together(conjuncts: Seq[Part]): Seq[(Condition, Seq[Int])] = {
    val onOne = for {
      (part @ Part(_, expression, Some(leaf)), i) <- conjuncts.zipWithIndex
      if !expression.isInstanceOf[expressions.IsNotNull]
    } yield (leaf.canonicalized, part, i)
    onOne.groupBy(_._1).values.filter(_.size > 1).toSeq.sortBy(_.head._3).map { some =>
      val all = some.map(_._2.expression).reduceLeft(expressions.And(_, _))
      val noRule = Condition.Unknown(Reason(ReasonCode.UnsupportedExpression, "expression" -> all.sql))
      withValues(some.head._2.copy(rules = noRule, expression = all)) -> some.map(_._3)
    }
  }

  /** NOT goes down to the leaves first (De Morgan); only there it is known whether a rule is exact. */
  private def normal(condition: Expression, negated: Boolean): Part = condition match {
    case expressions.Not(child) => normal(child, !negated)
    case both @ (_: expressions.And | _: expressions.Or) =>
      val isOr = both.isInstanceOf[expressions.And] == negated
      both.children.map(normal(_, negated)).reduceLeft(join(isOr))
    case EquivalentCondition(equal) =>
      val same = normal(equal, negated)
      Some(part(same.rules, condition, negated)).filter(_.leaf.isDefined).getOrElse(same)
    case expressions.EqualNullSafe(child, expressions.Literal(truth: Boolean, _))
        if columns.find(child).isLeft =>
      val same = normal(child, negated == truth)
      if (negated) part(Or(same.rules, leaves.isNull(child)), condition, negated) else same
    case leaf => part(if (negated) leaves.negative(leaf) else leaves.positive(leaf), leaf, negated)
  }

  private def part(rules: Condition, condition: Expression, negated: Boolean): Part =
    Part(
      rules,
      if (negated) expressions.Not(condition) else condition,
      ValuePredicate.columnOf(condition).filter(columns.find(_).isRight))

  private def join(isOr: Boolean)(left: Part, right: Part): Part = {
    val leaf = left.leaf.filter(one => right.leaf.exists(_.semanticEquals(one)))
    def rulesOf(part: Part) = if (leaf.isDefined) part.rules else withValues(part)
    val (first, second) = (rulesOf(left), rulesOf(right))
    if (isOr) Part(Or(first, second), expressions.Or(left.expression, right.expression), leaf)
    else Part(And(first, second), expressions.And(left.expression, right.expression), leaf)
  }

  /** The rules, and the expression itself where they do not decide all that values can tell. */
  def withValues(part: Part): Condition = {
    val use = part.leaf.filterNot(_ => part.rules.leaves.forall(isDecided)).flatMap(columns.find(_).toOption)
    use.fold(part.rules)(Evaluated(part.rules, _, part.expression, part.leaf.get))
  }
}

private[spark] object Conjuncts {

  /** Whether counts of nulls and look-ups of single values say all about it that the values of a file can. */
  private def isDecided(leaf: Condition): Boolean = leaf match {
    case Member(term, set, _) => term.isColumn && set.points.isDefined
    case Condition.Unknown(_) | Condition.Related(_, _, _) | Condition.Evaluated(_, _, _, _) => false
    case _ => true
  }

  /** Why nothing may be made of a conjunct: its answer is not fixed while a query is planned, or users' code gives it. */
  def refusal(conjunct: Expression): Option[Reason] = refusal(conjunct, _ => false)

  /** The same, with users' functions that are known by their version. */
  def refusal(conjunct: Expression, isKnown: UserDefinedExpression => Boolean): Option[Reason] = {
    def text = "expression" -> conjunct.sql
    if (!conjunct.deterministic) Some(Reason(ReasonCode.NotDeterministic, text))
    else conjunct.collectFirst {
      case _: PlanExpression[_] | _: OuterReference => Reason(ReasonCode.Subquery, text)
      case call: UserDefinedExpression if !isKnown(call) => Reason(ReasonCode.UserFunction, text)
    }
  }
}

/** Conditions that hold together on one column: no value may be in all their sets, though a file's bounds meet each of them. */
private[pruning] object Intersections {

  /** What follows from conditions that hold together and from no single one, and which of them it follows from. */
  def of(conditions: IndexedSeq[Condition]): Seq[(Condition, Seq[Int])] = {
    val parts = for {
      (condition, i) <- conditions.zipWithIndex
      part <- conjuncts(condition).flatMap(rulesOf(_))
      column <- onColumn(part)
    } yield (column, i)
    parts.groupBy(_._1.use).toSeq
      .flatMap { case (use, all) => unite(use, all.map(_._1)).map(_ -> all.map(_._2).distinct) }
      .sortBy(_._2.max)
  }

  /** An equal condition: each AND inside it stands together with what follows from it. */
  def tighten(condition: Condition): Condition = condition match {
    case Or(left, right) => Or(tighten(left), tighten(right))
    case part: Evaluated => part.copy(rules = tighten(part.rules))
    case and: And =>
      val parts = conjuncts(and).map(tighten).toIndexedSeq
      (parts ++ of(parts).map(_._1)).reduceLeft(And(_, _))
    case leaf => leaf
  }

  private def conjuncts(condition: Condition): Seq[Condition] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case leaf => Seq(leaf)
  }

  private def rulesOf(part: Condition): Seq[Condition] = part match {
    case Evaluated(rules, _, _, _) => conjuncts(rules)
    case other => Seq(other)
  }

  /** A condition on the bare column; `values` are those of which it is true, `None`: all. */
  private final case class OnColumn(
      use: ColumnReference,
      values: Option[ValueSet],
      ofNull: Boolean = false,
      onlyNull: Boolean = false)

  private def onColumn(condition: Condition): Option[OnColumn] = condition match {
    case Member(term, set, true) if term.isColumn => Some(OnColumn(term.column, Some(set)))
    case NullTest(use, isNull) => Some(OnColumn(use, None, ofNull = isNull, onlyNull = isNull))
    case NaNTest(use, true) => Some(OnColumn(use, Some(ValueSet.LongRange(DoubleOrder.NaN, DoubleOrder.NaN))))
    case NaNTest(use, false) =>
      Some(OnColumn(use, Some(ValueSet.LongRange(Long.MinValue, DoubleOrder.NaN - 1)), ofNull = true))
    case _ => None
  }

  private def unite(use: ColumnReference, conditions: Seq[OnColumn]): Option[Condition] = {
    val sets = conditions.flatMap(_.values)
    if (sets.isEmpty || conditions.forall(_.ofNull)) None
    else {
      val common = if (conditions.exists(_.onlyNull)) ValueSet.Nothing else sets.reduceLeft(_.intersect(_))
      if (conditions.exists(c => c.values.contains(common) && !c.ofNull)) None
      else Some(Member(Term(use, use.dataType, Nil), common, inside = true))
    }
  }
}
