package org.metastore.spark.pruning

import java.nio.charset.StandardCharsets.UTF_8

/**
 * What a LIKE pattern says about the beginning of what it matches.
 *
 * @param prefix what every match begins with
 * @param rest   what follows the prefix in the pattern
 */
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
