package org.metastore.spark.pruning

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.Literal.{FalseLiteral, TrueLiteral}
import org.apache.spark.sql.types.{BooleanType, DataType, StringType}

import org.metastore.spark.pruning.Relation.Comparison
import org.metastore.spark.reason.{Attempt, Optional}

/** Rewrites a condition without rules to one with rules that is true, false and NULL for the same rows. */
private[pruning] object EquivalentCondition {

  def unapply(condition: Expression): Option[Expression] = condition match {
    case Choice(cases) if condition.dataType == BooleanType =>
      branches(cases)(identity)
    case Coalesce(Seq(value, Literal(true, BooleanType))) =>
      Some(Not(EqualNullSafe(value, Literal(false))))
    case Coalesce(Seq(value, Literal(false, BooleanType))) =>
      Some(EqualNullSafe(value, TrueLiteral))
    case Comparison(IntegerText(number), Relation.Equal, text: Literal) =>
      parseNumber(text, number.dataType).map(EqualTo(number, _))
    case Comparison(IntegerText(number), Relation.NullSafeEqual, text: Literal) =>
      parseNumber(text, number.dataType).map(EqualNullSafe(number, _))
    case LiteralList(IntegerText(number), texts) if texts.nonEmpty =>
      val numbers = texts.flatMap(text => parseNumber(Literal(text, StringType), number.dataType))
      Optional.when(numbers.size == texts.size)(In(number, numbers))
    case _ =>
      byOperand(condition)
  }

  /** Writes `if(test, first, second)` with AND and OR; None if the test, which it repeats, has branches. */
  private def branch(test: Expression, first: Expression, second: Expression): Option[Expression] =
    if (!isPlain(test)) None
    else {
      val isTrue = if (test.nullable) EqualNullSafe(test, TrueLiteral) else test
      Some(or(and(isTrue, first), and(Not(isTrue), second)))
    }

  private def branches(cases: CaseWhen)(replace: Expression => Expression): Option[Expression] = {
    val otherwise = cases.elseValue.getOrElse(Literal(null, cases.dataType))
    val last = Option(replace(otherwise))
    cases.branches.foldRight(last) { case ((test, value), following) =>
      following.flatMap(branch(test, replace(value), _))
    }
  }

  /** Writes a condition on a choice of values, such as CASE, as one condition for each branch. */
  private def byOperand(condition: Expression): Option[Expression] = {
    def replace(from: Expression)(to: Expression) =
      fold(condition.mapChildren(child => if (child eq from) to else child))
    condition.children.filterNot(_.isInstanceOf[Literal]) match {
      case Seq(choice @ Choice(cases)) =>
        branches(cases)(replace(choice))
      case Seq(first @ Coalesce(Seq(value, default: Literal))) if isPlain(value) =>
        val isValue = and(IsNotNull(value), replace(first)(value))
        val isDefault = and(IsNull(value), replace(first)(default))
        Some(or(isValue, isDefault))
      case _ => None
    }
  }

  private def and(left: Expression, right: Expression): Expression = right match {
    case TrueLiteral => left
    case FalseLiteral => right
    case _ =>
      And(left, right)
  }

  private def or(left: Expression, right: Expression): Expression = (left, right) match {
    case (TrueLiteral, _) | (_, FalseLiteral) => left
    case (FalseLiteral, _) | (_, TrueLiteral) => right
    case _ =>
      Or(left, right)
  }

  private val Choices: Set[Class[_]] = Set(classOf[If], classOf[CaseWhen], classOf[Coalesce])

  private def isPlain(expression: Expression): Boolean = !expression.exists(part => Choices(part.getClass))

  private def fold(condition: Expression): Expression = {
    val value = if (condition.foldable) Attempt.orNone(condition.eval()) else None
    value.fold(condition)(Literal(_, BooleanType))
  }

  /** Matches IF and CASE, both as CASE. */
  private object Choice {
    def unapply(expression: Expression): Option[CaseWhen] = expression match {
      case cases: CaseWhen =>
        Some(cases)
      case If(test, first, second) =>
        Some(CaseWhen(Seq(test -> first), Some(second)))
      case _ => None
    }
  }

  private object IntegerText {
    def unapply(expression: Expression): Option[Expression] = expression match {
      case cast: Cast if cast.dataType == StringType && IntegralTypes.isIntegral(cast.child.dataType) =>
        Some(cast.child)
      case _ => None
    }
  }

  /** The number of a type that Spark writes as this text; None for other texts, such as `007`. */
  private def parseNumber(text: Literal, dataType: DataType): Option[Literal] = text.value match {
    case null =>
      Some(Literal(null, dataType))
    case digits =>
      val parsed = Try(digits.toString.toLong).toOption
      val number = parsed.filter(_.toString == digits.toString)
      val typed = number.flatMap(value => Option(Cast(Literal(value), dataType, None, EvalMode.TRY).eval()))
      typed.map(Literal(_, dataType))
  }
}
