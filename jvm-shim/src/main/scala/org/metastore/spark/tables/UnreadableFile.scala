package org.metastore.spark.tables

import scala.util.matching.Regex

/** The file that Spark could not read, and why, in the causes of what it threw; as `find_cause` in Python. */
object UnreadableFile {
  private val Named: Regex = "(?:reading file|footer for file:?) (?:FileStatus\\{path=)?([^\n;}]+)".r
  private val End = "\\.?(?: SQLSTATE: \\w+)?\\s*$"
  private val MostCauses = 20

  /** Matches what a file of a table made Spark throw. */
  def unapply(thrown: Exception): Option[(String, String)] = {
    val causes = causesOf(thrown)
    val named = causes.flatMap(cause => Named.findFirstMatchIn(messageOf(cause)))
    val file = named.map(_.group(1).replaceFirst(End, "").trim).headOption
    file.map(_ -> firstLine(causes.last))
  }

  private def causesOf(thrown: Throwable): Seq[Throwable] =
    Iterator.iterate(thrown)(_.getCause).takeWhile(_ != null).take(MostCauses).toList

  private def messageOf(thrown: Throwable): String = Option(thrown.getMessage).getOrElse(thrown.toString)

  private def firstLine(thrown: Throwable): String =
    messageOf(thrown).split("\n").head.replaceFirst(End, "")
}
