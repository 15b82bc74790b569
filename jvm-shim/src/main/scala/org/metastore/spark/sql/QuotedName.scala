package org.metastore.spark.sql

/** Writes the parts of a name so that SQL reads them back. */
object SqlName {

  /** Joins parts by dots for people; parts that are no plain identifiers are back-quoted. */
  def apply(parts: Seq[String]): String =
    parts.map(part => if (part.matches("[a-zA-Z_][a-zA-Z0-9_]*")) part else quoted(part)).mkString(".")

  /** Joins parts by dots for a parser, which may take plain identifiers for keywords. */
  def everyPart(parts: Seq[String]): String = parts.map(quoted).mkString(".")

  private def quoted(part: String): String = s"`${part.replace("`", "``")}`"
}
