package org.metastore.spark.reason

import java.util.Locale

import org.apache.spark.unsafe.types.UTF8String

/** Hints for a mistyped name. */
object NearNames {
  private val Most = 3
  private val Shown = 5

  /** A question with the near names, as the end of a sentence; empty if there are none. */
  def phraseSuggestion(name: String, names: Seq[String], prefix: String = ""): String =
    phraseSuggestion(find(name.stripPrefix(prefix), names.map(_.stripPrefix(prefix))).map(prefix + _))

  /** The question, or some of the known names where none is near. */
  def hint(name: String, names: Seq[String], prefix: String = ""): String = {
    val suggestion = phraseSuggestion(name, names, prefix)
    if (suggestion.nonEmpty) suggestion else listNames(names)
  }

  /** Some names as the end of a sentence. */
  def listNames(names: Seq[String]): String = {
    val more = names.length - Shown
    if (names.isEmpty) ""
    else s" Known: ${names.take(Shown).mkString(", ")}${if (more > 0) s" and $more more" else ""}."
  }

  /** The question for names that are near. */
  def phraseSuggestion(near: Seq[String]): String =
    if (near.isEmpty) "" else s" Did you mean ${near.mkString(" or ")}?"

  /**
   * At most three names that share more than half of their letters with `name`; only those that are about as
   * near as the nearest.
   */
  def find(name: String, names: Seq[String]): Seq[String] = {
    val target = UTF8String.fromString(name.toLowerCase(Locale.ROOT))
    def distanceTo(other: String) =
      target.levenshteinDistance(UTF8String.fromString(other.toLowerCase(Locale.ROOT)))
    val near = for {
      other <- names
      distance = distanceTo(other)
      if distance <= math.max(2, name.length / 3) && 2 * distance < math.max(name.length, other.length)
    } yield other -> distance
    val nearest = near.sortBy(_._2).take(Most)
    nearest.takeWhile(_._2 <= nearest.head._2 + 1).map(_._1)
  }
}

/**
 * Shows text of others in one line: nothing in it acts on a terminal, turns a line around or hides. As
 * `metastore.visible_text` in Python; values in rows are never changed.
 */
object VisibleText {
  private val hidden = Set[Int](
    Character.CONTROL,
    Character.FORMAT,
    Character.SURROGATE,
    Character.LINE_SEPARATOR,
    Character.PARAGRAPH_SEPARATOR,
    Character.PRIVATE_USE,
    Character.UNASSIGNED)
  private val blankLetters = Set(0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x3164, 0xffa0)
  private val short = Map(0x09 -> "\\t", 0x0a -> "\\n", 0x0d -> "\\r")

  /** The text with a backslash and a number for everything that cannot be seen. */
  def apply(text: String): String =
    if (text.forall(char => char >= ' ' && char <= '~')) text
    else text.codePoints.toArray.map(render).mkString

  private def render(point: Int): String =
    if (!hidden(Character.getType(point)) && !blankLetters(point)) new String(Character.toChars(point))
    else short.getOrElse(point, escape(point))

  private def escape(point: Int): String =
    if (point < 0x100) f"\\x$point%02x" else if (point < 0x10000) f"\\u$point%04x" else f"\\U$point%08x"
}

/** Writes the parts of a name so that SQL reads them back. */
object SqlName {

  /** Joins parts by dots for people; parts that are no plain identifiers are back-quoted. */
  def apply(parts: Seq[String]): String =
    parts.map(part => if (part.matches("[a-zA-Z_][a-zA-Z0-9_]*")) part else quoted(part)).mkString(".")

  /** Joins parts by dots for a parser, which may take plain identifiers for keywords. */
  def everyPart(parts: Seq[String]): String = parts.map(quoted).mkString(".")

  private def quoted(part: String): String = s"`${part.replace("`", "``")}`"
}
