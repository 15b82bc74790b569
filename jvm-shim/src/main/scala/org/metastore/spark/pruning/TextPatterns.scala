package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

import scala.annotation.tailrec

/** The beginning of a LIKE pattern without wildcards, and the rest of the pattern. */
private[pruning] final case class LikePattern(prefix: Array[Byte], rest: LikePattern.Rest)

private[pruning] object LikePattern {
  sealed trait Rest

  /** No rest: only the prefix itself matches. */
  object End extends Rest

  /** One or more `%`: all texts that begin with the prefix match. */
  object Anything extends Rest

  /** A rest that bounds cannot decide. */
  object Other extends Rest

  private val Wildcards = Set('%', '_')
  private val Replacement = '\uFFFD' // what Spark's regular expression sees for bytes that are no UTF-8

  /** Parses a pattern; None if Spark would refuse it, or would not match it byte by byte. */
  def parse(pattern: String, escape: Char): Option[LikePattern] =
    if (pattern.contains(Replacement)) None
    else parse(pattern.toList, escape, new StringBuilder)

  @tailrec
  private def parse(pattern: List[Char], escape: Char, prefix: StringBuilder): Option[LikePattern] =
    pattern match {
      case `escape` :: escaped :: following if escaped == escape || Wildcards(escaped) =>
        parse(following, escape, prefix.append(escaped))
      case `escape` :: _ => None
      case next :: following if !Wildcards(next) =>
        parse(following, escape, prefix.append(next))
      case remaining =>
        Some(LikePattern(prefix.toString.getBytes(UTF_8), rest(remaining)))
    }

  private def rest(remaining: List[Char]): Rest =
    if (remaining.isEmpty) End
    else if (remaining.forall(_ == '%')) Anything
    else Other
}

private[pruning] object RegularExpressions {
  private val Plain = "^\\^([A-Za-z0-9_ ,:;/=@#%&'\"<>~-]*)(.?)".r
  private val Quantifiers = Set("?", "*", "{")

  /** The prefix of all texts that a regular expression matches; empty if it has none of plain characters. */
  def parsePrefix(pattern: String): String = Plain.findFirstMatchIn(pattern) match {
    case Some(matched) if !pattern.contains('|') =>
      val (prefix, following) = (matched.group(1), matched.group(2))
      if (Quantifiers(following)) prefix.dropRight(1) else prefix
    case _ => ""
  }
}
