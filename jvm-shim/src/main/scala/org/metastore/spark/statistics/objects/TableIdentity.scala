package org.metastore.spark.statistics.objects

import org.metastore.spark.reason.SqlName

/**
 * Which table the statistics belong to. A reader with another uuid at hand ignores them.
 *
 * @param nameMapping Iceberg's name mapping as a table property has it now: statistics do not store it
 * @param ownFiles    how the table reads files beside its own, where that is not as the session does
 */
final case class TableIdentity(
    format: String,
    uuid: String,
    location: String,
    name: String,
    nameMapping: Option[String] = None,
    ownFiles: Option[StoreFiles] = None) {

  /** What our ANALYZE TABLE calls it: of a Parquet table by its name ANALYZE is Spark's own, if no setting says else. */
  def inStatements: String =
    if (format == "parquet" && !name.startsWith(s"$format.")) SqlName(Seq(format, location))
    else name

  /** The folder of its statistics: in the store that `spark.metastore.store` names, else beside the table. */
  def folder(store: Option[String]): String = store.filter(_.nonEmpty) match {
    case Some(uri) => s"${uri.stripSuffix("/")}/$format-$uuid"
    case None => s"${location.stripSuffix("/")}/_metastore"
  }

  /** How that folder is read, where not as the session does: the keys of a table are for its own place alone. */
  def filesOf(store: Option[String]): Option[StoreFiles] =
    if (store.exists(_.nonEmpty)) None else ownFiles
}
