package org.metastore.spark.tables

import org.apache.spark.sql.types.DataType

/**
 * A leaf of a table's schema.
 *
 * @param key  as docs/format.md, "Identity"
 * @param path names from the root of the schema
 */
final case class Leaf(key: String, path: Seq[String], dataType: DataType) {

  /** The dotted name; parts that hold a dot or a back-quote are back-quoted. */
  def name: String = path.map { part =>
    if (part.isEmpty || part.contains('.') || part.contains('`')) s"`${part.replace("`", "``")}`" else part
  }.mkString(".")
}

/** A live data file of a snapshot, as the table itself knows it. `deletedRows = None`: unknown. */
final case class LiveFile(path: String, size: Long, rows: Option[Long], deletedRows: Option[Long], partition: Map[String, String])

/** What the statistics need to know of a table, whatever its format. Read once, for one question. */
trait LakeTable {

  /** iceberg, delta, hudi or parquet. */
  def format: String
  def uuid: String
  def location: String

  /** The snapshot that the name points to; `None`: the table was never written. */
  def current: Option[String]

  /** The snapshot itself and those it was made from, newest first. */
  def lineage(snapshot: String): Iterator[String]

  /** Whether the table no longer knows a snapshot, as it happens to old ones. */
  def hasExpired(snapshot: String): Boolean = false

  /** Whether older ancestors of a snapshot have expired: `lineage` ends before them. */
  def hasExpiredAncestors(snapshot: String): Boolean = false

  /** The snapshot called `text`: an id, or a name that the format gives to snapshots. */
  def snapshot(text: String): Option[String]

  /** The snapshot that was current at an instant, in microseconds. */
  def snapshotAt(micros: Long): Option[String]

  /** Leaves of a snapshot's schema, in order; of the table's own for the snapshot that its name points to. */
  def leaves(snapshot: Option[String]): IndexedSeq[Leaf]

  /** The data files of a snapshot. Reads the table's metadata. */
  def dataFiles(snapshot: String): Seq[LiveFile]
}
