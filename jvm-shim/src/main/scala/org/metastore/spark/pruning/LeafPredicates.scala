package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.Condition.{Always, Member, NaNTest, Never, NullTest, Related, Unknown}
import org.metastore.spark.pruning.LiteralValues.{BytesKey, Key, LongKey}
import org.metastore.spark.pruning.Relation.Comparison
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Compiles conditions without AND, OR and NOT. */
private[pruning] final class LeafPredicates(columns: ColumnLookup, allowance: EvaluationAllowance) {
  private val terms = new Terms(columns)

  /** The rule for rows where the condition is true. */
  def positive(condition: Expression): Condition = condition match {
    case In(PrefixTerm(term, length), list) if list.forall(_.isInstanceOf[Literal]) =>
      prefixIn(term, length, list, condition)
    case Comparison(PrefixTerm(term, length), Relation.Equal, literal: Literal) =>
      comparePrefix(term, length, literal, condition)
    case RLike(terms(term), Literal(pattern: UTF8String, StringType)) =>
      regular(term, pattern.toString, condition)
    case _ =>
      leaf(condition, holds = true)
  }

  /** The rule for rows where the condition is false: not where it is NULL. */
  def negative(condition: Expression): Condition = leaf(condition, holds = false)

  /** @param holds whether the rule is for rows where the condition is true, or for rows where it is false */
  private def leaf(condition: Expression, holds: Boolean): Condition = condition match {
    case Literal(value, BooleanType) =>
      if (value == holds) Always else Never
    case IsNull(child) =>
      nullTest(child, isNull = holds)
    case IsNotNull(child) =>
      nullTest(child, isNull = !holds)
    case IsNaN(child) =>
      onColumn(child)(NaNTest(_, holds))
    case LiteralList(value, list) =>
      if (holds) in(value, list, condition) else notIn(value, list, condition)
    case StartsWith(terms(term), Literal(prefix: UTF8String, StringType)) =>
      startsWith(term, prefix.getBytes, inside = holds)
    case Like(terms(term), Literal(pattern: UTF8String, StringType), escape) =>
      like(term, LikePattern.parse(pattern.toString, escape), holds, condition)
    case Comparison(left, Relation.NullSafeEqual, right) =>
      compareNullSafe(left, right, holds, condition)
    case Comparison(left, relation, right) =>
      compare(left, if (holds) relation else relation.negated, right, condition)
    case terms(term) if term.dataType == BooleanType =>
      Member(term, LiteralValues.point(LongKey(if (holds) 1 else 0)), inside = true)
    case other =>
      unknown(other)
  }

  private def compare(
      left: Expression,
      relation: Relation,
      right: Expression,
      condition: Expression): Condition = (left, right) match {
    case (Literal(null, _), _) | (_, Literal(null, _)) => Never
    case (terms(term), literal: Literal) =>
      compareWith(term, relation, literal, condition)
    case (terms(first), terms(second)) if first.dataType == second.dataType =>
      Related(first, relation, second)
    case _ =>
      unknown(condition)
  }

  private def compareWith(
      term: Term,
      relation: Relation,
      literal: Literal,
      condition: Expression): Condition =
    if (literal.dataType != term.dataType) unknown(condition)
    else LiteralValues.key(literal.value, term.dataType) match {
      case Some(key) =>
        member(term, relation.values(key), relation.isInside)
      case None =>
        unknown(condition)
    }

  /** The term is in a set of values, or not in it; None is the empty set. */
  private def member(term: Term, values: Option[ValueSet], inside: Boolean): Condition =
    values.fold[Condition](Never)(Member(term, _, inside))

  private def compareNullSafe(
      child: Expression,
      other: Expression,
      holds: Boolean,
      condition: Expression): Condition = other match {
    case Literal(null, _) =>
      nullTest(child, isNull = holds)
    case _ if holds =>
      compare(child, Relation.NullSafeEqual, other, condition)
    case _: Literal =>
      Condition.Or(nullTest(child, isNull = true), compare(child, Relation.NotEqual, other, condition))
    case _ =>
      unknown(condition)
  }

  /** `value IN (list)`. A NULL in the list never makes the condition true: it is dropped. */
  private def in(value: Expression, list: Seq[Any], condition: Expression): Condition =
    withKeys(value, list.filter(_ != null), condition) { (term, keys) =>
      member(term, LiteralValues.points(keys), inside = true)
    }

  /** `value NOT IN (list)`, never true with a NULL in the list. An empty list depends on a setting. */
  private def notIn(value: Expression, list: Seq[Any], condition: Expression): Condition =
    if (list.contains(null)) Never
    else if (list.isEmpty) unknown(condition)
    else withKeys(value, list, condition) { (term, keys) =>
      member(term, LiteralValues.points(keys), inside = false)
    }

  private def withKeys(value: Expression, list: Seq[Any], condition: Expression)(
      make: (Term, Seq[Key]) => Condition): Condition =
    value match {
      case terms(term) =>
        val keys = allowance.inTime(list).flatMap(LiteralValues.key(_, term.dataType)).toVector
        if (keys.size == list.size) make(term, keys) else unknown(condition)
      case _ =>
        unknown(condition)
    }

  private def startsWith(term: Term, prefix: Array[Byte], inside: Boolean): Condition =
    if (prefix.nonEmpty) Member(term, ValueSet.withPrefix(prefix), inside)
    else if (inside) NullTest(term.column, isNull = false)
    else Never

  private def like(
      term: Term,
      pattern: Option[LikePattern],
      holds: Boolean,
      condition: Expression): Condition = pattern match {
    case Some(LikePattern(exact, LikePattern.End)) =>
      Member(term, LiteralValues.point(BytesKey(exact)), inside = holds)
    case Some(LikePattern(prefix, LikePattern.Anything)) =>
      startsWith(term, prefix, inside = holds)
    case Some(LikePattern(prefix, LikePattern.Other)) if holds =>
      impliesPrefix(term, prefix, condition)
    case _ =>
      unknown(condition)
  }

  private def regular(term: Term, pattern: String, condition: Expression): Condition = {
    val prefix = RegularExpressions.parsePrefix(pattern)
    if (prefix.isEmpty || term.dataType != StringType) unknown(condition)
    else impliesPrefix(term, prefix.getBytes(UTF_8), condition)
  }

  /** A condition that is true only of texts with a prefix, but not of all of them. */
  private def impliesPrefix(term: Term, prefix: Array[Byte], condition: Expression): Condition =
    Condition.implies(startsWith(term, prefix, inside = true), noRule(condition))

  private def prefixIn(term: Term, length: Int, list: Seq[Expression], condition: Expression): Condition = {
    val equalities = list.collect { case literal: Literal => comparePrefix(term, length, literal, condition) }
    if (equalities.isEmpty) Never else equalities.reduceLeft(Condition.Or(_, _))
  }

  /** `substring(s, 1, n) = 'x'`: s begins with x. Bounds cannot compare the number of characters. */
  private def comparePrefix(term: Term, length: Int, literal: Literal, condition: Expression): Condition =
    literal.value match {
      case null => Never
      case prefix: UTF8String if prefix.numBytes > 0 && length > 0 && isUtf8(prefix) =>
        impliesPrefix(term, prefix.getBytes, condition)
      case _ =>
        unknown(condition)
    }

  private def isUtf8(text: UTF8String): Boolean =
    java.util.Arrays.equals(text.toString.getBytes(UTF_8), text.getBytes)

  private val FirstCharacter = Set(0, 1) // `substring` takes both as the first one

  private object PrefixTerm {
    def unapply(expression: Expression): Option[(Term, Int)] = expression match {
      case Substring(terms(term), Literal(from: Int, IntegerType), Literal(length: Int, IntegerType))
          if FirstCharacter(from) && term.dataType == StringType =>
        Some((term, length))
      case _ => None
    }
  }

  private def nullTest(child: Expression, isNull: Boolean): Condition =
    onColumn(child)(NullTest(_, isNull))

  private def onColumn(child: Expression)(test: ColumnReference => Condition): Condition =
    columns.find(child).fold(Unknown(_), test)

  /** The rule for rows where the condition is NULL: for a comparison, those where an operand is NULL. */
  def isNull(condition: Expression): Condition = condition match {
    case _ if !condition.nullable => Never
    case Not(child) =>
      isNull(child)
    case both @ (_: And | _: Or) =>
      Condition.implies(both.children.map(isNull).reduceLeft(Condition.Or(_, _)), noRule(condition))
    case _: BinaryComparison =>
      condition.children.map(isNullOperand).reduceLeft(Condition.Or(_, _))
    case _ =>
      unknown(condition)
  }

  private def isNullOperand(operand: Expression): Condition = operand match {
    case Literal(value, _) =>
      if (value == null) Always else Never
    case child =>
      nullTest(child, isNull = true)
  }

  private def unknown(expression: Expression): Condition = Unknown(noRule(expression))

  private def noRule(expression: Expression): Reason = {
    val columnPaths = expression.collect { case e @ ColumnLookup.ColumnPath(_, _) => e }
    val withoutBounds = columnPaths.flatMap(columns.noBoundsReason(_))
    val notFound = columnPaths.flatMap(columns.find(_).left.toOption)
    def unsupported = Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql)
    (withoutBounds ++ notFound).headOption.getOrElse(unsupported)
  }
}
