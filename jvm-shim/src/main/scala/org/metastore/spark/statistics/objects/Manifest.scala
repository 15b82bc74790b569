package org.metastore.spark.statistics.objects

import java.util.IdentityHashMap
import java.util.Collections.newSetFromMap

import org.apache.commons.codec.digest.DigestUtils

/** The whole state of a table's statistics (docs/format.md, "Manifest"). */
final case class Manifest(
    sequence: Long,
    commit: String,
    writtenAt: String,
    writer: String,
    table: TableIdentity,
    settings: Map[String, String],
    blocks: IndexedSeq[Block],
    snapshots: IndexedSeq[Snapshot],
    fingerprint: String) {

  /** Paths of all columns of the blocks, by the same path in lower case. */
  lazy val pathsIgnoringCase: Map[Seq[String], Seq[Seq[String]]] = {
    // blocks mostly share a schema
    val schemas = newSetFromMap(new IdentityHashMap[IndexedSeq[ColumnEntry], java.lang.Boolean])
    val columns = blocks.map(_.columns).filter(schemas.add(_)).flatten
    columns.map(_.path).distinct.groupBy(ColumnEntry.lowerCase(_))
  }

  /** The SQL of the expressions that blocks have statistics of, by their keys. */
  lazy val expressions: Map[String, String] = ColumnEntry.expressionsAmong(blocks.iterator.flatMap(_.columns))

  private lazy val isMapped: Boolean = {
    val schemas = blocks.iterator.map(_.columns) ++ snapshots.iterator.map(_.columns)
    schemas.exists(_.exists(NameMapping.hasMappedKey))
  }

  // A mapping seldom changes: the last one is remembered.
  @volatile private var resolved: Option[(Option[String], Manifest)] = None

  /** The manifest for a table's name mapping: columns that the mapping changed are unknown. */
  def under(nameMapping: Option[String]): Manifest = {
    val isExpressed = nameMapping.isDefined && expressions.nonEmpty
    if (!isMapped && !isExpressed) this
    else resolved match {
      case Some((`nameMapping`, manifest)) => manifest
      case _ =>
        val manifest = resolve(nameMapping)
        resolved = Some(nameMapping -> manifest)
        manifest
    }
  }

  private def resolve(nameMapping: Option[String]): Manifest = {
    val mapping = new NameMapping(nameMapping)
    copy(
      blocks = blocks.map(block => block.copy(columns = mapping.resolve(block.columns))),
      snapshots = snapshots.map(snapshot => snapshot.copy(columns = mapping.resolve(snapshot.columns))),
      fingerprint =
        s"$fingerprint${Manifest.UnderMapping}${DigestUtils.sha256Hex(nameMapping.getOrElse(""))}")
  }

  /** The newest analyzed snapshot, if any. */
  def latest: Option[Snapshot] = snapshots.lastOption

  /** The analyzed snapshot of that id, if any. */
  def snapshot(id: String): Option[Snapshot] = snapshots.find(_.id == id)
}

object Manifest {

  /** The separator before the digest of a name mapping in a fingerprint. */
  private[statistics] val UnderMapping = "/"
}
