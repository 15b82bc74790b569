package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.types.{BooleanType, DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.reason.Recoverable

/** Writes a condition in another way for which there are rules: true, false and NULL of the same rows. */
private[pruning] object EquivalentCondition {

  def unapply(condition: Expression): Option[Expression] = condition match {
    case If(test, one, other) if condition.dataType == BooleanType => branch(test, one, other)
    case cases: CaseWhen if condition.dataType == BooleanType => branches(cases)(identity)
    case Coalesce(Seq(value, Literal(instead: Boolean, BooleanType))) =>
      Some(if (instead) Not(EqualNullSafe(value, Literal(false))) else EqualNullSafe(value, TrueLiteral))
    case EqualTo(IntegerText(number), text: Literal) =>
      numberOf(text, number.dataType).map(EqualTo(number, _))
    case EqualTo(text: Literal, IntegerText(number)) =>
      numberOf(text, number.dataType).map(EqualTo(number, _))
    case EqualNullSafe(IntegerText(number), text: Literal) =>
      numberOf(text, number.dataType).map(EqualNullSafe(number, _))
    case LiteralList(IntegerText(number), texts) if texts.nonEmpty =>
      val numbers = texts.flatMap(text => numberOf(Literal(text, StringType), number.dataType))
      if (numbers.size == texts.size) Some(In(number, numbers)) else None
    case _ => byOperand(condition)
  }

  /** A test is written twice: not one with tests inside. */
  private def branch(test: Expression, one: Expression, other: Expression): Option[Expression] =
    if (!isPlain(test)) None
    else {
      val isTrue = if (test.nullable) EqualNullSafe(test, TrueLiteral) else test
      Some(or(and(isTrue, one), and(Not(isTrue), other)))
    }

  private def branches(cases: CaseWhen)(of: Expression => Expression): Option[Expression] = {
    val last = Option(of(cases.elseValue.getOrElse(Literal(null, cases.dataType))))
    cases.branches.foldRight(last) { case ((test, value), rest) => rest.flatMap(branch(test, of(value), _)) }
  }

  /** A condition on literals and on a value that is one of several says of each what it does of that one alone. */
  private def byOperand(condition: Expression): Option[Expression] = {
    def of(from: Expression)(to: Expression) =
      fold(condition.mapChildren(child => if (child eq from) to else child))
    condition.children.filterNot(_.isInstanceOf[Literal]) match {
      case Seq(either @ If(test, one, other)) => branch(test, of(either)(one), of(either)(other))
      case Seq(cases: CaseWhen) => branches(cases)(of(cases))
      case Seq(first @ Coalesce(Seq(value, instead: Literal))) if isPlain(value) =>
        Some(or(and(IsNotNull(value), of(first)(value)), and(IsNull(value), of(first)(instead))))
      case _ => None
    }
  }

  private def and(left: Expression, right: Expression): Expression = right match {
    case Literal(true, _) => left
    case Literal(false, _) => right
    case _ => And(left, right)
  }

  private def or(left: Expression, right: Expression): Expression = (left, right) match {
    case (Literal(true, _), _) | (_, Literal(false, _)) => left
    case (Literal(false, _), _) | (_, Literal(true, _)) => right
    case _ => Or(left, right)
  }

  private def isPlain(expression: Expression): Boolean =
    !expression.exists(part =>
      part.isInstanceOf[If] || part.isInstanceOf[CaseWhen] || part.isInstanceOf[Coalesce])

  private def fold(condition: Expression): Expression =
    if (!condition.foldable) condition
    else
      try Literal(condition.eval(), BooleanType)
      catch { case Recoverable(_) => condition }

  private object IntegerText {
    def unapply(expression: Expression): Option[Expression] = expression match {
      case cast: Cast if cast.dataType == StringType && Terms.isIntegral(cast.child.dataType) =>
        Some(cast.child)
      case _ => None
    }
  }

  /** The number of a type whose text this is; of others, such as `007`, there is none. */
  private def numberOf(text: Literal, dataType: DataType): Option[Literal] = text.value match {
    case null => Some(Literal(null, dataType))
    case written: UTF8String =>
      scala.util.Try(written.toString.toLong).toOption
        .filter(number => number.toString == written.toString)
        .flatMap(number => Option(Cast(Literal(number), dataType, None, EvalMode.TRY).eval()))
        .map(Literal(_, dataType))
    case _ => None
  }
}
