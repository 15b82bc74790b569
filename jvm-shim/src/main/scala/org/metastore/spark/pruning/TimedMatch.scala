package org.metastore.spark.pruning

import java.util.regex.Pattern

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.types.{BooleanType, DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** `RLIKE` and `LIKE` as Spark answers them, ended by a clock: backtracking may take for ever, and heeds no interrupt. */
private[spark] final case class TimedMatch(
    child: Expression,
    pattern: Pattern,
    isWhole: Boolean,
    clock: EvaluationClock)
  extends UnaryExpression
  with CodegenFallback {

  override def dataType: DataType = BooleanType

  override protected def nullSafeEval(text: Any): Any = {
    val matcher = pattern.matcher(new TimedMatch.Text(text.toString, clock))
    if (isWhole) matcher.matches() else matcher.find(0)
  }

  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

private[spark] object TimedMatch {
  private val Steps = 4096

  /** The same condition, with patterns that a clock ends. */
  def within(condition: Expression, clock: EvaluationClock): Expression = condition.transformUp {
    case one @ RLike(text, Literal(pattern, _)) if isPlain(one) =>
      TimedMatch(text, Pattern.compile(pattern.toString), isWhole = false, clock)
    case one @ Like(text, Literal(pattern, _), escape) if isPlain(one) =>
      val whole = Pattern.compile(StringUtils.escapeLikeRegex(pattern.toString, escape), Pattern.DOTALL)
      TimedMatch(text, whole, isWhole = true, clock)
  }

  private def isPlain(matching: Expression): Boolean = matching.children match {
    case Seq(text, Literal(_: UTF8String, StringType)) => text.dataType == StringType
    case _ => false
  }

  /** Other uses of patterns, unless all that one matches is as long as it is written. */
  def isEndless(expression: Expression): Boolean = expression match {
    case one @ (_: RLike | _: Like) =>
      !isPlain(one)
    case one @ (_: RegExpReplace | _: RegExpExtractBase | _: StringSplit) => one.children(1) match {
        case Literal(pattern: UTF8String, _) =>
          pattern.toString.exists("*+{?".contains(_))
        case _ => true
      }
    case other =>
      other.isInstanceOf[MultiLikeBase]
  }

  /** A text that raises TimeoutException where it is read for too long. */
  private final class Text(text: CharSequence, clock: EvaluationClock) extends CharSequence {
    private var read = 0

    override def charAt(i: Int): Char = {
      read += 1
      if (read % Steps == 0) clock.check()
      text.charAt(i)
    }

    override def length: Int = text.length
    override def subSequence(from: Int, to: Int): CharSequence = text.subSequence(from, to)
    override def toString: String = text.toString
  }
}
