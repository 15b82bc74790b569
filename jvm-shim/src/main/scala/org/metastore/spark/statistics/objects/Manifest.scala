package org.metastore.spark.statistics.objects

import java.util.Locale

import org.apache.commons.codec.digest.DigestUtils

import org.metastore.spark.reason.SqlName

/** An immutable object of the store, as a manifest names it. It is trusted only when length and digest agree. */
final case class ObjectRef(
    name: String,
    length: Long,
    sha256: String,
    rows: Long,
    footerLength: Int,
    footerSha256: String) {

  /** What comes before the uuid: `files`, `summary`, `table-summary`, ... */
  def kind: String = ObjectRef.kindOf(name)
}

object ObjectRef {
  private val TailLength = "-00000000-0000-0000-0000-000000000000.parquet".length

  /** In the reference to an object of which nobody says how many rows it has. */
  val AnyRows: Long = -1

  /** The kind that a name says. */
  private[statistics] def kindOf(name: String): String = name.dropRight(TailLength)
}

/** How values of a column are stored: which of the three typed columns holds its bounds. */
sealed abstract class Encoding(val name: String)

object Encoding {
  case object LongValues extends Encoding("long")
  case object DoubleValues extends Encoding("double")
  case object BinaryValues extends Encoding("binary")
}

/**
 * A leaf column as it was when its statistics were written.
 *
 * @param encoding `None`: only counts are stored
 * @param collation `None`: UTF8_BINARY
 */
final case class ColumnEntry(
    key: String,
    path: Seq[String],
    dataType: String,
    encoding: Option[Encoding],
    collation: Option[String],
    casts: Boolean = false) {

  /** Whether it is an expression over columns, whose SQL is its path. */
  def isExpression: Boolean = key.startsWith(Manifest.ExpressionPrefix)
}

/** An object and the columns that it holds. */
final case class SummaryRef(ref: ObjectRef, columns: Seq[Int], part: Option[HashPart] = None)

/** One of `of` equal ranges of all hashes, the `place`-th from 0. */
final case class HashPart(place: Int, of: Int) {
  def has(hash: Long): Boolean = (hash >>> 32) * of >>> 32 == place
}

/** The statistics of some data files. Several blocks may describe one file; each of them is sound on its own. */
final case class Block(
    id: String,
    computed: String,
    columns: IndexedSeq[ColumnEntry],
    files: ObjectRef,
    summary: Seq[SummaryRef],
    zones: Seq[SummaryRef] = Nil) {
  private lazy val byKey = columns.zipWithIndex.groupBy(_._1.key)
  private lazy val byOrdinal = Block.byOrdinal(summary)
  private lazy val zonesByOrdinal = Block.byOrdinal(zones)

  /** The columns of that key, with their ordinals: more than one where the column had several types. */
  def columnsOf(key: String): Seq[(ColumnEntry, Int)] = byKey.getOrElse(key, Nil)

  /** The summary object that holds a column, if it has statistics. */
  def summaryOf(ordinal: Int): Option[ObjectRef] = byOrdinal.get(ordinal)

  /** The object that holds a column's zones, if it has them. */
  def zonesOf(ordinal: Int): Option[ObjectRef] = zonesByOrdinal.get(ordinal)

  /** Compared by the object that lists its files: a block may have thousands of columns. */
  override def hashCode: Int = files.hashCode
}

private[statistics] object Block {
  private def byOrdinal(parts: Seq[SummaryRef]): Map[Int, ObjectRef] =
    parts.flatMap(part => part.columns.map(_ -> part.ref)).toMap
}

/**
 * Which table the statistics belong to. A reader with another uuid at hand ignores them.
 *
 * @param nameMapping Iceberg's name mapping as a table property has it now: statistics do not store it
 * @param ownFiles    how the table reads files beside its own, where that is not through Hadoop
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
    if (format == "parquet" && !name.startsWith(s"$format.")) SqlName(Seq(format, location)) else name

  /** The folder of its statistics: in the store that `spark.metastore.store` names, else beside the table. */
  def folder(store: Option[String]): String = store.filter(_.nonEmpty) match {
    case Some(uri) => s"${uri.stripSuffix("/")}/$format-$uuid"
    case None => s"${location.stripSuffix("/")}/_metastore"
  }

  /** How that folder is read, where not through Hadoop: the keys of a table are for its own place alone. */
  def filesOf(store: Option[String]): Option[StoreFiles] =
    if (store.exists(_.nonEmpty)) None else ownFiles
}

/**
 * The table level of one analyzed snapshot.
 *
 * @param columns those of the schema, then expressions over them that have statistics
 * @param rows live rows, `None` where other files change rows; `physicalRows` counts deleted rows too
 */
final case class Snapshot(
    id: String,
    analyzedAt: String,
    computed: String,
    exact: Boolean,
    columns: IndexedSeq[ColumnEntry],
    files: Long,
    filesTotal: Long,
    rows: Option[Long],
    physicalRows: Option[Long],
    sizeBytes: Long,
    liveSizeBytes: Option[Long],
    tableFiles: ObjectRef,
    summary: Option[ObjectRef],
    sketches: Option[ObjectRef],
    frequencies: Seq[SummaryRef] = Nil,
    histograms: Option[ObjectRef] = None,
    ranks: Seq[RanksRef] = Nil,
    distribution: Seq[Int] = Nil,
    placed: Option[ObjectRef] = None) {

  /** The SQL of the expressions that it tells of, by their keys. */
  lazy val expressions: Map[String, String] = Manifest.expressionsOf(columns.iterator)
}

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
    val schemas = java.util.Collections.newSetFromMap(new java.util.IdentityHashMap[
      IndexedSeq[ColumnEntry],
      java.lang.Boolean])
    // blocks mostly share a schema
    val written = blocks.map(_.columns).filter(schemas.add(_)).flatMap(_.map(_.path)).distinct
    written.groupBy(_.map(_.toLowerCase(Locale.ROOT)))
  }

  /** The SQL of the expressions that blocks have statistics of, by their keys. */
  lazy val expressions: Map[String, String] = Manifest.expressionsOf(blocks.iterator.flatMap(_.columns))

  private lazy val isMapped: Boolean = {
    val schemas = blocks.iterator.map(_.columns) ++ snapshots.iterator.map(_.columns)
    schemas.exists(_.exists(entry => NameMapping.fieldId(entry.key).isDefined))
  }

  // a mapping seldom changes: the last one is kept
  @volatile private var resolved: Option[(Option[String], Manifest)] = None

  /** The manifest as a table reads it: of columns that its name mapping gives another meaning nothing is known. */
  def under(nameMapping: Option[String]): Manifest = {
    val isExpressed = nameMapping.isDefined && expressions.nonEmpty
    if (!isMapped && !isExpressed) this
    else resolved.collectFirst { case (`nameMapping`, manifest) => manifest }.getOrElse {
      val made = resolve(nameMapping)
      resolved = Some(nameMapping -> made)
      made
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

  /** The beginning of the keys of expressions, as no key of a column begins. */
  val ExpressionPrefix = "expression:"

  /** In a fingerprint, what comes before the digest of a name mapping. */
  private[statistics] val UnderMapping = "/"

  private[objects] def expressionsOf(columns: Iterator[ColumnEntry]): Map[String, String] =
    columns.filter(_.isExpression).map(one => one.key -> one.path.head).toMap
}

/** A part of the exact ranks of some columns of a snapshot. */
final case class RanksRef(ref: ObjectRef, columns: Seq[Int], before: Seq[Long]) {
  def valuesBefore(column: Int): Long = before(columns.indexOf(column))
}
