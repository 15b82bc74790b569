package org.metastore.spark

import java.util.Locale

import org.apache.spark.unsafe.types.UTF8String

/** What is said to who mistypes a name. */
object NearNames {
  private val Most = 3
  private val Shown = 5

  /**
   * A question that names what is near, as the end of a sentence; empty where nothing is.
   *
   * @param prefix what names begin with: it makes none of them alike
   */
  def phraseSuggestion(name: String, names: Seq[String], prefix: String = ""): String =
    phraseSuggestion(find(name.stripPrefix(prefix), names.map(_.stripPrefix(prefix))).map(prefix + _))

  /** The question, or, where nothing is near, some of the names that there are. */
  def hint(name: String, names: Seq[String], prefix: String = ""): String =
    Some(phraseSuggestion(name, names, prefix)).filter(_.nonEmpty).getOrElse(listNames(names))

  /** Some names as the end of a sentence. */
  def listNames(names: Seq[String]): String = {
    val others = names.length - Shown
    if (names.isEmpty) "" else s" Known: ${names.take(Shown).mkString(", ")}${if (others > 0) s" and $others more" else ""}."
  }

  /** The question for names that are near. */
  def phraseSuggestion(near: Seq[String]): String = if (near.isEmpty) "" else s" Did you mean ${near.mkString(" or ")}?"

  /** At most three names that share more than half of their letters with `name`. */
  def find(name: String, names: Seq[String]): Seq[String] = {
    val wanted = UTF8String.fromString(name.toLowerCase(Locale.ROOT))
    names.map(n => n -> wanted.levenshteinDistance(UTF8String.fromString(n.toLowerCase(Locale.ROOT))))
      .filter { case (n, distance) => distance <= math.max(2, name.length / 3) && 2 * distance < math.max(name.length, n.length) }
      .sortBy(_._2).map(_._1).take(Most)
  }
}
