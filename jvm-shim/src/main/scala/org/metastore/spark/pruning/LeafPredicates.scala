package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.{Left, Right}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.Condition.{Always, Member, NaNTest, Never, NullTest, Related, Unknown}
import org.metastore.spark.pruning.LiteralValues.{BytesKey, Key, LongKey}
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Turns a condition without AND, OR and NOT into a leaf. */
private[pruning] final class LeafPredicates(columns: ColumnLookup, allowance: EvaluationAllowance) {
  private val terms = new Terms(columns)

  /** The rule for rows where the condition is true. */
  def positive(condition: Expression): Condition = condition match {
    case Literal(true, BooleanType) => Always
    case Literal(_, BooleanType) => Never
    case IsNull(child) =>
      nullTest(child, isNull = true)
    case IsNotNull(child) =>
      nullTest(child, isNull = false)
    case IsNaN(child) =>
      nanTest(child, isNaN = true)
    case In(PrefixTerm(term, length), list) if list.forall(_.isInstanceOf[Literal]) =>
      prefixIn(term, length, list, condition)
    case LiteralList(value, list) =>
      in(value, list, condition)
    case StartsWith(terms(term), Literal(prefix: UTF8String, StringType)) =>
      startsWith(term, prefix.getBytes, inside = true)
    case Like(terms(term), Literal(pattern: UTF8String, StringType), escape) =>
      like(term, pattern.toString, escape, condition)
    case RLike(terms(term), Literal(pattern: UTF8String, StringType)) =>
      regular(term, pattern.toString, condition)
    case EqualTo(PrefixTerm(term, length), literal: Literal) =>
      comparePrefix(term, length, literal, condition)
    case EqualTo(literal: Literal, PrefixTerm(term, length)) =>
      comparePrefix(term, length, literal, condition)
    case comparison: BinaryComparison =>
      compare(comparison)
    case terms(term) if term.dataType == BooleanType =>
      Member(term, LiteralValues.point(LongKey(1)), inside = true)
    case other =>
      unknown(other)
  }

  /** The rule for rows where the condition is false: not where it is NULL. */
  def negative(condition: Expression): Condition = condition match {
    case Literal(false, BooleanType) => Always
    case Literal(_, BooleanType) => Never
    case IsNull(child) =>
      nullTest(child, isNull = false)
    case IsNotNull(child) =>
      nullTest(child, isNull = true)
    case IsNaN(child) =>
      nanTest(child, isNaN = false)
    case LiteralList(value, list) =>
      notIn(value, list, condition)
    case StartsWith(terms(term), Literal(prefix: UTF8String, StringType)) =>
      startsWith(term, prefix.getBytes, inside = false)
    case Like(terms(term), Literal(pattern: UTF8String, StringType), escape) =>
      notLike(term, pattern.toString, escape, condition)
    case equality: EqualTo =>
      notEqual(equality, equality)
    case equality: EqualNullSafe =>
      notNullSafeEqual(equality)
    case LessThan(left, right) =>
      compare(GreaterThanOrEqual(left, right))
    case LessThanOrEqual(left, right) =>
      compare(GreaterThan(left, right))
    case GreaterThan(left, right) =>
      compare(LessThanOrEqual(left, right))
    case GreaterThanOrEqual(left, right) =>
      compare(LessThan(left, right))
    case terms(term) if term.dataType == BooleanType =>
      Member(term, LiteralValues.point(LongKey(0)), inside = true)
    case other =>
      unknown(other)
  }

  private def compare(comparison: BinaryComparison): Condition = literalLast(comparison) match {
    case EqualNullSafe(child, Literal(null, _)) =>
      nullTest(child, isNull = true)
    case BinaryComparison(_, Literal(null, _)) | BinaryComparison(Literal(null, _), _) => Never
    case ordered @ BinaryComparison(terms(term), literal: Literal) =>
      withKey(term, literal, comparison)(against(term, ordered, _))
    case BinaryComparison(terms(left), terms(right)) if left.dataType == right.dataType =>
      related(left, comparison, right)
    case _ =>
      unknown(comparison)
  }

  private def against(term: Term, comparison: BinaryComparison, key: Key): Condition = comparison match {
    case _: EqualTo | _: EqualNullSafe =>
      memberOf(term, Some(LiteralValues.point(key)))
    case _: LessThan =>
      memberOf(term, LiteralValues.below(key, included = false))
    case _: LessThanOrEqual =>
      memberOf(term, LiteralValues.below(key, included = true))
    case _: GreaterThan =>
      memberOf(term, LiteralValues.above(key, included = false))
    case _: GreaterThanOrEqual =>
      memberOf(term, LiteralValues.above(key, included = true))
    case other =>
      unknown(other)
  }

  /** The term has one of the values, of which there may be none. */
  private def memberOf(term: Term, values: Option[ValueSet]): Condition = values match {
    case Some(set) =>
      Member(term, set, inside = true)
    case None => Never
  }

  /** The same comparison with a literal on the right, where one is on the left. */
  private def literalLast(comparison: BinaryComparison): BinaryComparison =
    (comparison.left, comparison) match {
      case (literal: Literal, EqualTo(_, right)) =>
        EqualTo(right, literal)
      case (literal: Literal, EqualNullSafe(_, right)) =>
        EqualNullSafe(right, literal)
      case (literal: Literal, LessThan(_, right)) =>
        GreaterThan(right, literal)
      case (literal: Literal, LessThanOrEqual(_, right)) =>
        GreaterThanOrEqual(right, literal)
      case (literal: Literal, GreaterThan(_, right)) =>
        LessThan(right, literal)
      case (literal: Literal, GreaterThanOrEqual(_, right)) =>
        LessThanOrEqual(right, literal)
      case _ => comparison
    }

  private def related(left: Term, comparison: BinaryComparison, right: Term): Condition = comparison match {
    case _: EqualTo =>
      Related(left, Relation.Equal, right)
    case _: EqualNullSafe =>
      Related(left, Relation.NullSafeEqual, right)
    case _: LessThan =>
      Related(left, Relation.Less, right)
    case _: LessThanOrEqual =>
      Related(left, Relation.LessOrEqual, right)
    case _: GreaterThan =>
      Related(right, Relation.Less, left)
    case _: GreaterThanOrEqual =>
      Related(right, Relation.LessOrEqual, left)
    case other =>
      unknown(other)
  }

  private def notEqual(equality: EqualTo, condition: Expression): Condition = literalLast(equality) match {
    case BinaryComparison(_, Literal(null, _)) | BinaryComparison(Literal(null, _), _) => Never
    case BinaryComparison(terms(term), literal: Literal) =>
      withKey(term, literal, condition)(key => Member(term, LiteralValues.point(key), inside = false))
    case BinaryComparison(terms(a), terms(b)) if a.dataType == b.dataType =>
      Related(a, Relation.NotEqual, b)
    case _ =>
      unknown(condition)
  }

  private def notNullSafeEqual(equality: EqualNullSafe): Condition = literalLast(equality) match {
    case EqualNullSafe(child, Literal(null, _)) =>
      nullTest(child, isNull = false)
    case EqualNullSafe(child, literal: Literal) =>
      Condition.Or(nullTest(child, isNull = true), notEqual(EqualTo(child, literal), equality))
    case _ =>
      unknown(equality)
  }

  /** NULL in the list only adds rows where the condition is NULL. */
  private def in(value: Expression, list: Seq[Any], condition: Expression): Condition =
    withKeys(value, list.filter(_ != null), condition) { (term, keys) =>
      memberOf(term, LiteralValues.points(keys))
    }

  /** With NULL in the list the condition is never true. An empty list is left alone: its meaning depends on a setting. */
  private def notIn(value: Expression, list: Seq[Any], condition: Expression): Condition =
    if (list.contains(null)) Never
    else if (list.isEmpty) unknown(condition)
    else withKeys(value, list, condition) { (term, keys) =>
      Member(term, LiteralValues.points(keys).get, inside = false)
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

  private def withKey(
      term: Term,
      literal: Literal,
      condition: Expression)(make: Key => Condition): Condition =
    if (literal.dataType != term.dataType) unknown(condition)
    else LiteralValues.key(literal.value, term.dataType) match {
      case Some(key) =>
        make(key)
      case None =>
        unknown(condition)
    }

  private def startsWith(term: Term, prefix: Array[Byte], inside: Boolean): Condition =
    if (prefix.nonEmpty) Member(term, ValueSet.ofPrefix(prefix), inside)
    else if (inside) NullTest(term.column, isNull = false)
    else Never

  private def like(term: Term, pattern: String, escape: Char, condition: Expression): Condition =
    LikePattern.parse(pattern, escape) match {
      case Some(LikePattern(exact, LikePattern.End)) =>
        Member(term, LiteralValues.point(BytesKey(exact)), inside = true)
      case Some(LikePattern(prefix, LikePattern.Anything)) =>
        startsWith(term, prefix, inside = true)
      case Some(LikePattern(prefix, LikePattern.Other)) =>
        impliesPrefix(term, prefix, condition)
      case None =>
        unknown(condition)
    }

  private def notLike(term: Term, pattern: String, escape: Char, condition: Expression): Condition =
    LikePattern.parse(pattern, escape) match {
      case Some(LikePattern(exact, LikePattern.End)) =>
        Member(term, LiteralValues.point(BytesKey(exact)), inside = false)
      case Some(LikePattern(prefix, LikePattern.Anything)) =>
        startsWith(term, prefix, inside = false)
      case _ =>
        unknown(condition)
    }

  private def regular(term: Term, pattern: String, condition: Expression): Condition = {
    val prefix = RegularExpressions.prefixOf(pattern)
    if (prefix.isEmpty || term.dataType != StringType) unknown(condition)
    else impliesPrefix(term, prefix.getBytes(UTF_8), condition)
  }

  /** A condition that is true only of texts with a prefix, and not of all of them. */
  private def impliesPrefix(term: Term, prefix: Array[Byte], condition: Expression): Condition =
    Condition.implies(startsWith(term, prefix, inside = true), noRule(condition))

  private def prefixIn(term: Term, length: Int, list: Seq[Expression], condition: Expression): Condition = {
    val equalities = list.collect { case literal: Literal => comparePrefix(term, length, literal, condition) }
    if (equalities.isEmpty) Never else equalities.reduceLeft(Condition.Or(_, _))
  }

  /** `substring(s, 1, n) = 'x'`: s begins with x. More would need the number of its characters. */
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

  private object PrefixTerm {
    def unapply(expression: Expression): Option[(Term, Int)] = expression match {
      case Substring(terms(term), Literal(from: Int, IntegerType), Literal(length: Int, IntegerType))
          if term.dataType == StringType && (from == 0 || from == 1) => Some((term, length))
      case _ => None
    }
  }

  private def nullTest(child: Expression, isNull: Boolean): Condition =
    onColumn(child)(NullTest(_, isNull))

  private def nanTest(child: Expression, isNaN: Boolean): Condition = child.dataType match {
    case FloatType | DoubleType =>
      onColumn(child)(NaNTest(_, isNaN))
    case _ =>
      unknown(child)
  }

  private def onColumn(child: Expression)(test: ColumnReference => Condition): Condition =
    columns.find(child) match {
      case Right(column) =>
        test(column)
      case Left(reason) =>
        Unknown(reason)
    }

  /** Where a condition is NULL: a comparison of columns with literals wherever one of the columns is. */
  def isNull(condition: Expression): Condition = condition match {
    case _ if !condition.nullable => Never
    case Not(child) =>
      isNull(child)
    case both @ (_: And | _: Or) =>
      Condition.implies(both.children.map(isNull).reduceLeft(Condition.Or(_, _)), noRule(condition))
    case _: EqualTo | _: LessThan | _: LessThanOrEqual | _: GreaterThan | _: GreaterThanOrEqual =>
      condition.children.map(isNullOperand).reduceLeft(Condition.Or(_, _))
    case _ =>
      unknown(condition)
  }

  private def isNullOperand(operand: Expression): Condition = operand match {
    case Literal(null, _) => Always
    case _: Literal => Never
    case child =>
      nullTest(child, isNull = true)
  }

  private def unknown(expression: Expression): Condition = Unknown(noRule(expression))

  private def noRule(expression: Expression): Reason = {
    val columnPaths = expression.collect { case e @ ColumnLookup.ColumnPath(_, _) => e }
    val withoutBounds = columnPaths.flatMap(columns.whyNoBounds(_))
    val notFound = columnPaths.flatMap(columns.find(_).left.toOption)
    def unsupported = Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql)
    (withoutBounds ++ notFound).headOption.getOrElse(unsupported)
  }
}
