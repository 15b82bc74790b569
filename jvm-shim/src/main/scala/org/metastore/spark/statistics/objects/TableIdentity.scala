package org.metastore.spark.statistics.objects

import org.metastore.spark.reason.SqlName

/**
 * The identity of the table that the statistics belong to. Readers ignore statistics with another uuid.
 *
 * @param nameMapping the current name mapping in the table's properties: statistics do not store it
 * @param ownFiles    the table's own access to files beside its data files; None if the session's serves
 */
final case class TableIdentity(
    format: String,
    uuid: String,
    location: String,
    name: String,
    nameMapping: Option[String] = None,
    ownFiles: Option[StoreFiles] = None) {

  /**
   * Its name in our ANALYZE TABLE. By its plain name, a Parquet table is analyzed by Spark, if no setting
   * changes it.
   */
  def inStatements: String =
    if (format == "parquet" && !name.startsWith(s"$format.")) SqlName(Seq(format, location))
    else name

  /** The folder of its statistics: in the store that `spark.metastore.store` names, else beside the table. */
  def folder(store: Option[String]): String = store.filter(_.nonEmpty) match {
    case Some(uri) => s"${uri.stripSuffix("/")}/$format-$uuid"
    case None => s"${location.stripSuffix("/")}/_metastore"
  }

  /** The table's own access to that folder: its keys open its own location, not a separate store. */
  def filesOf(store: Option[String]): Option[StoreFiles] =
    if (store.exists(_.nonEmpty)) None else ownFiles
}
