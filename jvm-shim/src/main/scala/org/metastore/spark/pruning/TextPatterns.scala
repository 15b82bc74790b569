package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

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
    while (valid && at < pattern.length && isInPrefix(pattern(at), escape)) {
      if (pattern(at) == escape) {
        at += 1
        valid = at < pattern.length && mayBeEscaped(pattern(at), escape)
      }
      if (valid) prefix.append(pattern(at))
      at += 1
    }
    if (!valid) None
    else Some(LikePattern(prefix.toString.getBytes(UTF_8), rest(pattern.drop(at))))
  }

  private def isInPrefix(c: Char, escape: Char): Boolean = c == escape || !isWildcard(c)

  private def mayBeEscaped(c: Char, escape: Char): Boolean = c == escape || isWildcard(c)

  private def isWildcard(c: Char): Boolean = c == '%' || c == '_'

  private def rest(remaining: String): Rest =
    if (remaining.isEmpty) End
    else if (remaining.forall(_ == '%')) Anything
    else Other
}

private[pruning] object RegularExpressions {
  private val Plain = "^\\^([A-Za-z0-9_ ,:;/=@#%&'\"<>~-]*)(.?)".r
  private val Quantifiers = "?*{"

  /** What all texts begin with that a regular expression finds; empty where that is not plain from its own beginning. */
  def prefixOf(pattern: String): String = Plain.findFirstMatchIn(pattern) match {
    case Some(matched) if !pattern.contains('|') =>
      val (prefix, following) = (matched.group(1), matched.group(2))
      val mayBeAbsent = following.nonEmpty && Quantifiers.contains(following)
      if (mayBeAbsent) prefix.dropRight(1) else prefix
    case _ => ""
  }
}
