package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.Condition.{Always, Member, NaNTest, Never, NullTest, Related, Unknown}
import org.metastore.spark.pruning.LiteralValues.{BytesKey, Key}
import org.metastore.spark.reason.{Reason, ReasonCode}

/** Turns a condition without AND, OR and NOT into a leaf. */
private[pruning] final class LeafPredicates(columns: ColumnLookup, allowance: EvaluationAllowance) {
  private val terms = new Terms(columns)

  /** The rule for rows where the condition is true. */
  def positive(condition: Expression): Condition = condition match {
    case Literal(true, BooleanType) => Always
    case Literal(_, BooleanType) => Never
    case IsNull(child) => nullTest(child, isNull = true)
    case IsNotNull(child) => nullTest(child, isNull = false)
    case IsNaN(child) => nanTest(child, isNaN = true)
    case In(PrefixTerm(term, length), list) if list.forall(_.isInstanceOf[Literal]) =>
      list.map(item => comparePrefix(term, length, item.asInstanceOf[Literal], condition)).reduceOption(
        Condition.Or(_, _)).getOrElse(Never)
    case LiteralList(value, list) => in(value, list, condition)
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
    case comparison: BinaryComparison => compare(comparison)
    case terms(term) if term.dataType == BooleanType =>
      Member(term, LiteralValues.point(LiteralValues.LongKey(1)), inside = true)
    case other => unknown(other)
  }

  /** The rule for rows where the condition is false: not where it is NULL. */
  def negative(condition: Expression): Condition = condition match {
    case Literal(false, BooleanType) => Always
    case Literal(_, BooleanType) => Never
    case IsNull(child) => nullTest(child, isNull = false)
    case IsNotNull(child) => nullTest(child, isNull = true)
    case IsNaN(child) => nanTest(child, isNaN = false)
    case LiteralList(value, list) => notIn(value, list, condition)
    case StartsWith(terms(term), Literal(prefix: UTF8String, StringType)) =>
      startsWith(term, prefix.getBytes, inside = false)
    case Like(terms(term), Literal(pattern: UTF8String, StringType), escape) =>
      notLike(term, pattern.toString, escape, condition)
    case equality: EqualTo => notEqual(equality, equality)
    case equality: EqualNullSafe => notNullSafeEqual(equality)
    case LessThan(left, right) => compare(GreaterThanOrEqual(left, right))
    case LessThanOrEqual(left, right) => compare(GreaterThan(left, right))
    case GreaterThan(left, right) => compare(LessThanOrEqual(left, right))
    case GreaterThanOrEqual(left, right) => compare(LessThan(left, right))
    case terms(term) if term.dataType == BooleanType =>
      Member(term, LiteralValues.point(LiteralValues.LongKey(0)), inside = true)
    case other => unknown(other)
  }

  private def compare(comparison: BinaryComparison): Condition = literalLast(comparison) match {
    case EqualNullSafe(child, Literal(null, _)) => nullTest(child, isNull = true)
    case BinaryComparison(_, Literal(null, _)) | BinaryComparison(Literal(null, _), _) => Never
    case ordered @ BinaryComparison(terms(term), literal: Literal) =>
      withKey(term, literal, comparison)(against(term, ordered, _))
    case BinaryComparison(terms(left), terms(right)) if left.dataType == right.dataType =>
      related(left, comparison, right)
    case _ => unknown(comparison)
  }

  private def against(term: Term, comparison: BinaryComparison, key: Key): Condition = {
    def in(accepted: Option[ValueSet]): Condition =
      accepted.fold[Condition](Never)(Member(term, _, inside = true))
    comparison match {
      case _: EqualTo | _: EqualNullSafe => in(Some(LiteralValues.point(key)))
      case _: LessThan => in(LiteralValues.below(key, included = false))
      case _: LessThanOrEqual => in(LiteralValues.below(key, included = true))
      case _: GreaterThan => in(LiteralValues.above(key, included = false))
      case _: GreaterThanOrEqual => in(LiteralValues.above(key, included = true))
      case other => unknown(other)
    }
  }

  /** The same comparison with a literal on the right, where one is on the left. */
  private def literalLast(comparison: BinaryComparison): BinaryComparison =
    (comparison.left, comparison) match {
      case (literal: Literal, EqualTo(_, right)) => EqualTo(right, literal)
      case (literal: Literal, EqualNullSafe(_, right)) => EqualNullSafe(right, literal)
      case (literal: Literal, LessThan(_, right)) => GreaterThan(right, literal)
      case (literal: Literal, LessThanOrEqual(_, right)) => GreaterThanOrEqual(right, literal)
      case (literal: Literal, GreaterThan(_, right)) => LessThan(right, literal)
      case (literal: Literal, GreaterThanOrEqual(_, right)) => LessThanOrEqual(right, literal)
      case _ => comparison
    }

  private def related(left: Term, comparison: BinaryComparison, right: Term): Condition = comparison match {
    case _: EqualTo => Related(left, Relation.Equal, right)
    case _: EqualNullSafe => Related(left, Relation.NullSafeEqual, right)
    case _: LessThan => Related(left, Relation.Less, right)
    case _: LessThanOrEqual => Related(left, Relation.LessOrEqual, right)
    case _: GreaterThan => Related(right, Relation.Less, left)
    case _: GreaterThanOrEqual => Related(right, Relation.LessOrEqual, left)
    case other => unknown(other)
  }

  private def notEqual(equality: EqualTo, whole: Expression): Condition = literalLast(equality) match {
    case BinaryComparison(_, Literal(null, _)) | BinaryComparison(Literal(null, _), _) => Never
    case BinaryComparison(terms(term), literal: Literal) =>
      withKey(term, literal, whole)(key => Member(term, LiteralValues.point(key), inside = false))
    case BinaryComparison(terms(a), terms(b)) if a.dataType == b.dataType => Related(a, Relation.NotEqual, b)
    case _ => unknown(whole)
  }

  private def notNullSafeEqual(equality: EqualNullSafe): Condition = literalLast(equality) match {
    case EqualNullSafe(child, Literal(null, _)) => nullTest(child, isNull = false)
    case EqualNullSafe(child, literal: Literal) =>
      Condition.Or(nullTest(child, isNull = true), notEqual(EqualTo(child, literal), equality))
    case _ => unknown(equality)
  }

  /** NULL in the list only adds rows where the condition is NULL. */
  private def in(value: Expression, list: Seq[Any], whole: Expression): Condition =
    withKeys(value, list.filter(_ != null), whole) { (term, keys) =>
      LiteralValues.points(keys).fold[Condition](Never)(Member(term, _, inside = true))
    }

  /** With NULL in the list the condition is never true. An empty list is left alone: its meaning depends on a setting. */
  private def notIn(value: Expression, list: Seq[Any], whole: Expression): Condition =
    if (list.contains(null)) Never
    else if (list.isEmpty) unknown(whole)
    else withKeys(value, list, whole)((term, keys) =>
      Member(term, LiteralValues.points(keys).get, inside = false))

  private def withKeys(
      value: Expression,
      list: Seq[Any],
      whole: Expression)(make: (Term, Seq[Key]) => Condition): Condition =
    value match {
      case terms(term) =>
        val keys = allowance.inTime(list).flatMap(LiteralValues.key(_, term.dataType)).toVector
        if (keys.size == list.size) make(term, keys) else unknown(whole)
      case _ => unknown(whole)
    }

  private def withKey(term: Term, literal: Literal, whole: Expression)(make: Key => Condition): Condition =
    if (literal.dataType != term.dataType) unknown(whole)
    else LiteralValues.key(literal.value, term.dataType).fold(unknown(whole))(make)

  private def startsWith(term: Term, prefix: Array[Byte], inside: Boolean): Condition =
    if (prefix.isEmpty) { if (inside) NullTest(term.column, isNull = false) else Never }
    else Member(term, ValueSet.ofPrefix(prefix), inside)

  private def like(term: Term, pattern: String, escape: Char, whole: Expression): Condition =
    LikePattern.parse(pattern, escape).fold(unknown(whole)) {
      case LikePattern(exact, LikePattern.End) =>
        Member(term, LiteralValues.point(BytesKey(exact)), inside = true)
      case LikePattern(prefix, LikePattern.Anything) => startsWith(term, prefix, inside = true)
      case LikePattern(prefix, LikePattern.Other) =>
        Condition.implies(startsWith(term, prefix, inside = true), noRule(whole))
    }

  private def notLike(term: Term, pattern: String, escape: Char, whole: Expression): Condition =
    LikePattern.parse(pattern, escape).fold(unknown(whole)) {
      case LikePattern(exact, LikePattern.End) =>
        Member(term, LiteralValues.point(BytesKey(exact)), inside = false)
      case LikePattern(prefix, LikePattern.Anything) => startsWith(term, prefix, inside = false)
      case LikePattern(_, LikePattern.Other) => unknown(whole)
    }

  private def regular(term: Term, pattern: String, whole: Expression): Condition = {
    val prefix = RegularExpressions.prefixOf(pattern)
    if (prefix.isEmpty || term.dataType != StringType) unknown(whole)
    else Condition.implies(startsWith(term, prefix.getBytes(UTF_8), inside = true), noRule(whole))
  }

  /** `substring(s, 1, n) = 'x'`: s begins with x. More would need the number of its characters. */
  private def comparePrefix(term: Term, length: Int, literal: Literal, whole: Expression): Condition =
    literal.value match {
      case null => Never
      case prefix: UTF8String if prefix.numBytes > 0 && length > 0 && isUtf8(prefix) =>
        Condition.implies(startsWith(term, prefix.getBytes, inside = true), noRule(whole))
      case _ => unknown(whole)
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
    columns.find(child).fold[Condition](Unknown, NullTest(_, isNull))

  /** Where a condition is NULL: a comparison of columns with literals wherever one of the columns is. */
  def isNull(condition: Expression): Condition = condition match {
    case _ if !condition.nullable => Never
    case Not(child) => isNull(child)
    case both @ (_: And | _: Or) =>
      Condition.implies(both.children.map(isNull).reduceLeft(Condition.Or(_, _)), noRule(condition))
    case EqualTo(_, _) | LessThan(_, _) | LessThanOrEqual(_, _) | GreaterThan(_, _) | GreaterThanOrEqual(
          _,
          _) =>
      condition.children.map {
        case Literal(value, _) => if (value == null) Always else Never
        case child => nullTest(child, isNull = true)
      }.reduceLeft(Condition.Or(_, _))
    case _ => unknown(condition)
  }

  private def nanTest(child: Expression, isNaN: Boolean): Condition = child.dataType match {
    case FloatType | DoubleType => columns.find(child).fold[Condition](Unknown, NaNTest(_, isNaN))
    case _ => unknown(child)
  }

  private def unknown(expression: Expression): Condition = Unknown(noRule(expression))

  private def noRule(expression: Expression): Reason = {
    val causes = expression.collect { case e @ ColumnLookup.ColumnPath(_, _) => e }
    causes.flatMap(columns.whyNoBounds(_)).headOption
      .orElse(causes.flatMap(columns.find(_).left.toOption).headOption)
      .getOrElse(Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql))
  }
}

/** An expression and the literals of an IN list, which the optimizer may have made a set. */
private[spark] object LiteralList {
  def unapply(condition: Expression): Option[(Expression, Seq[Any])] = condition match {
    case In(value, list) if list.forall(_.isInstanceOf[Literal]) =>
      Some(value -> list.map(_.asInstanceOf[Literal].value))
    case InSet(value, set) => Some(value -> set.toSeq)
    case _ => None
  }
}

/** What a LIKE pattern says about the beginning of what it matches. */
private[pruning] final case class LikePattern(prefix: Array[Byte], rest: LikePattern.Rest)

private[pruning] object LikePattern {
  sealed trait Rest

  /** Nothing: matches equal the prefix. */
  case object End extends Rest

  /** One or more `%`: everything that begins with the prefix matches. */
  case object Anything extends Rest

  /** Something that bounds cannot decide. */
  case object Other extends Rest

  private val Replacement = '\uFFFD' // what Spark's regular expression sees for bytes that are no UTF-8

  /** `None` where Spark would refuse the pattern, or matches it by more than bytes. */
  def parse(pattern: String, escape: Char): Option[LikePattern] = {
    val prefix = new StringBuilder
    var at = 0
    var valid = pattern.indexOf(Replacement) < 0
    while (valid && at < pattern.length && (pattern(at) == escape || !isWildcard(pattern(at)))) {
      if (pattern(at) == escape) {
        at += 1
        valid = at < pattern.length && (pattern(at) == escape || isWildcard(pattern(at)))
      }
      if (valid) prefix.append(pattern(at))
      at += 1
    }
    if (!valid) None else Some(LikePattern(prefix.toString.getBytes(UTF_8), rest(pattern.drop(at))))
  }

  private def isWildcard(c: Char): Boolean = c == '%' || c == '_'

  private def rest(remaining: String): Rest =
    if (remaining.isEmpty) End else if (remaining.forall(_ == '%')) Anything else Other
}

private[pruning] object RegularExpressions {
  private val Plain = "^\\^([A-Za-z0-9_ ,:;/=@#%&'\"<>~-]*)(.?)".r
  private val Quantifiers = "?*{"

  /** What all texts begin with that a regular expression finds; empty where that is not plain from its own beginning. */
  def prefixOf(pattern: String): String = Plain.findFirstMatchIn(pattern) match {
    case Some(found) if !pattern.contains('|') =>
      val mayBeAbsent = found.group(2).nonEmpty && Quantifiers.contains(found.group(2))
      if (mayBeAbsent) found.group(1).dropRight(1) else found.group(1)
    case _ => ""
  }
}
