package org.metastore.spark.tables

import scala.util.matching.Regex

import org.metastore.spark.reason.MetastoreException

/**
 * The file that Spark could not read, and the reason, by the causes of an exception. Python's `find_cause`
 * does it alike.
 */
object UnreadableFile {
  private val Named: Regex = "(?:reading file|footer for file:?) (?:FileStatus\\{path=)?([^\n;}]+)".r
  private val End = "\\.?(?: SQLSTATE: \\w+)?\\s*$"

  /** Matches an exception that names a file of a table. */
  def unapply(thrown: Exception): Option[(String, String)] = {
    val causes = MetastoreException.causes(thrown)
    val named = causes.flatMap(cause => Named.findFirstMatchIn(messageOf(cause)))
    for (file <- named.headOption)
      yield (file.group(1).replaceFirst(End, "").trim, firstLine(causes.last))
  }

  private def messageOf(thrown: Throwable): String = Option(thrown.getMessage).getOrElse(thrown.toString)

  private def firstLine(thrown: Throwable): String =
    messageOf(thrown).split("\n").head.replaceFirst(End, "")
}
