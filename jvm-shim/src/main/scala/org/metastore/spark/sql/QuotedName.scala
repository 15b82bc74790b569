package org.metastore.spark.sql

/** Writes the parts of a name so that SQL reads them back. */
object QuotedName {

  /** Joins parts by dots; parts that are no plain identifiers are back-quoted. */
  def apply(parts: Seq[String]): String = parts.map(part =>
    if (part.matches("[a-zA-Z_][a-zA-Z0-9_]*")) part else s"`${part.replace("`", "``")}`").mkString(".")
}
