package org.metastore.spark

/**
 * Text that others wrote, made to be read in one line: nothing in it acts on a terminal, turns a line around or hides. As
 * `metastore.visible_text` in Python; values in rows are never changed.
 */
object VisibleText {
  private val hidden = Set[Int](Character.CONTROL, Character.FORMAT, Character.SURROGATE, Character.LINE_SEPARATOR,
    Character.PARAGRAPH_SEPARATOR, Character.PRIVATE_USE, Character.UNASSIGNED)
  private val blankLetters = Set(0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x3164, 0xffa0)
  private val short = Map(0x09 -> "\\t", 0x0a -> "\\n", 0x0d -> "\\r")

  /** The text with a backslash and a number for everything that cannot be seen. */
  def apply(text: String): String =
    if (text.forall(char => char >= ' ' && char <= '~')) text
    else text.codePoints.toArray.map(shown).mkString

  private def shown(point: Int): String =
    if (!hidden(Character.getType(point)) && !blankLetters(point)) new String(Character.toChars(point))
    else short.getOrElse(point, escape(point))

  private def escape(point: Int): String =
    if (point < 0x100) f"\\x$point%02x" else if (point < 0x10000) f"\\u$point%04x" else f"\\U$point%08x"
}
