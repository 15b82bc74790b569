package org.metastore.spark.adapter

/**
 * A data file of a scan, as the table format lists it at planning.
 *
 * @param path the path by which the statistics know it.
 * @param rows physical rows, where the format knows them.
 * @param liveRows rows that no delete removes, as far as the format knows it: only estimates depend on it.
 * @param modified modification time in milliseconds, where files have no other identity.
 * @param changed  whether other files change rows of this one as it is read: its statistics say nothing about them.
 */
final case class DataFile(
    path: String,
    size: Long,
    rows: Option[Long],
    liveRows: Option[Double] = None,
    modified: Option[Long] = None,
    changed: Boolean = false)
