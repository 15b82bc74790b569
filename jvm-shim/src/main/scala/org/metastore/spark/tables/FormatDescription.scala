package org.metastore.spark.tables

import com.fasterxml.jackson.databind.JsonNode

import org.metastore.spark.contract.Contract

/** A table format as `contract/formats.json` describes it. */
final class FormatDescription private (val name: String, entry: JsonNode) {

  /** The name as people write it. */
  val title: String = entry.get("title").asText

  /** The oldest and the newest known release; empty for a format that comes with Spark. */
  val oldest: String = entry.path("oldest").asText
  val newest: String = entry.path("newest").asText

  /** Whether files beside the data files may change any value of their rows. */
  val hasLogFiles: Boolean = entry.path("log_files").asBoolean

  /** The statement that rewrites `{table}` of `{catalog}` in the order of `{column}`. */
  val sortStatement: Option[String] = text("sort")

  /** Beginnings of its class names; none for a format that comes with Spark. */
  val packages: Seq[String] = Contract.texts(entry, "packages")

  /** Whether a class of this name is the format's. */
  def hasClass(className: String): Boolean = packages.exists(className.startsWith)

  /** A class that is in every jar of the format. */
  val knownClass: Option[String] = text("shown_by")

  /** A class whose method `version` returns the release, if the jar's manifest does not have it. */
  val versionClass: Option[String] = text("version_class")

  private def text(field: String): Option[String] = Option(entry.get(field)).map(_.asText)
}

object FormatDescription {

  /** Every table format, in the order of the contract. */
  lazy val all: Seq[FormatDescription] =
    for ((name, entry) <- Contract.named(Contract.read("formats"))) yield new FormatDescription(name, entry)

  /** The format of a name that the contract has. */
  def byName(name: String): FormatDescription = all.find(_.name == name).get
}
