package org.metastore.spark.pruning

import java.util.regex.Pattern

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.types.{BooleanType, DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** `RLIKE` and `LIKE` as Spark answers them, ended by a clock: backtracking may take for ever, and heeds no interrupt. */
private[pruning] final case class TimedMatch(child: Expression, pattern: Pattern, isWhole: Boolean, clock: EvaluationClock)
  extends UnaryExpression with CodegenFallback {

  override def dataType: DataType = BooleanType

  override protected def nullSafeEval(text: Any): Any = {
    val matcher = pattern.matcher(new TimedMatch.Text(text.toString, clock))
    if (isWhole) matcher.matches() else matcher.find(0)
  }

  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

private[pruning] object TimedMatch {
  private val Steps = 4096

  /** The text, the pattern, and whether all of the text is to match it. */
  object Of {
    def unapply(expression: Expression): Option[(Expression, Pattern, Boolean)] = expression match {
      case RLike(text, Literal(pattern: UTF8String, StringType)) if text.dataType == StringType =>
        Some((text, Pattern.compile(pattern.toString), false))
      case Like(text, Literal(pattern: UTF8String, StringType), escape) if text.dataType == StringType =>
        Some((text, Pattern.compile(StringUtils.escapeLikeRegex(pattern.toString, escape), Pattern.DOTALL), true))
      case _ => None
    }
  }

  /** Other uses of patterns, unless all that one matches is as long as it is written. */
  def isEndless(expression: Expression): Boolean = expression match {
    case one @ (_: RLike | _: Like) => Of.unapply(one).isEmpty
    case one @ (_: RegExpReplace | _: RegExpExtractBase | _: StringSplit) => one.children(1) match {
        case Literal(pattern: UTF8String, _) => pattern.toString.exists("*+{?".contains(_))
        case _ => true
      }
    case other => other.isInstanceOf[MultiLikeBase]
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
