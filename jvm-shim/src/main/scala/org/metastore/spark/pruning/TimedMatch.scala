package org.metastore.spark.pruning

import java.util.regex.Pattern

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.types.{BooleanType, DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** `RLIKE` and `LIKE` with a time limit: backtracking may take for ever, and no interrupt ends it. */
private[spark] final case class TimedMatch(
    child: Expression,
    pattern: Pattern,
    matchesWhole: Boolean,
    clock: EvaluationClock)
  extends UnaryExpression
  with CodegenFallback {

  override def dataType: DataType = BooleanType

  override protected def nullSafeEval(text: Any): Any = {
    val matcher = pattern.matcher(new TimedMatch.Text(text.toString, clock))
    if (matchesWhole) matcher.matches() else matcher.find(0)
  }

  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

private[spark] object TimedMatch {
  private val Steps = 4096

  /** An equal condition whose pattern matches have a time limit. */
  def within(condition: Expression, clock: EvaluationClock): Expression = condition.transformUp {
    case matching @ RLike(text, Literal(pattern, _)) if isPlain(matching) =>
      TimedMatch(text, Pattern.compile(pattern.toString), matchesWhole = false, clock)
    case matching @ Like(text, Literal(pattern, _), escape) if isPlain(matching) =>
      val compiled = Pattern.compile(StringUtils.escapeLikeRegex(pattern.toString, escape), Pattern.DOTALL)
      TimedMatch(text, compiled, matchesWhole = true, clock)
  }

  private def isPlain(matching: Expression): Boolean = matching.children match {
    case Seq(text, Literal(_: UTF8String, StringType)) => text.dataType == StringType
    case _ => false
  }

  /** Whether an expression matches patterns without a time limit, and may backtrack. */
  def isEndless(expression: Expression): Boolean = expression match {
    case matching @ (_: RLike | _: Like) =>
      !isPlain(matching)
    case matching @ (_: RegExpReplace | _: RegExpExtractBase | _: StringSplit) => matching.children(1) match {
        case Literal(pattern: UTF8String, _) =>
          pattern.toString.exists("*+{?".contains(_))
        case _ => true
      }
    case other =>
      other.isInstanceOf[MultiLikeBase]
  }

  /** A text that throws TimeoutException once it has been read for too long. */
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
