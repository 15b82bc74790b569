package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types._

import org.metastore.spark.MetastoreConf
import org.metastore.spark.store.{Manifest, Snapshot, StatisticsStore}
import org.metastore.spark.tables.{LakeTable, Leaf, TableReference}

/**
 * A table together with its statistics, for one question.
 *
 * @param name as the user wrote it
 */
final class TableContext private (val name: String, val table: LakeTable, val store: StatisticsStore) {

  /** The newest manifest that belongs to this very table, not to one of the same name that was dropped. */
  lazy val manifest: Option[Manifest] = store.manifest().filter(_.table.uuid == table.uuid)

  /** The snapshot asked for; without `at`, the one that the name points to. `None`: the table was never written. */
  def requestedSnapshot(at: Option[Literal]): Option[String] = at match {
    case None => table.current
    case Some(literal) => Some(snapshotOf(literal).getOrElse(throw unknownSnapshot(literal.toString)))
  }

  /**
   * The analyzed snapshot that answers for the snapshot asked for: itself, else its nearest ancestor. Of ancestors that
   * have expired only the manifest knows: the newest of them is taken.
   *
   * @param holds which analyzed snapshots can answer
   */
  def answeringSnapshot(asked: Option[String], holds: Snapshot => Boolean): Option[Snapshot] = manifest.flatMap { known =>
    val usable = known.snapshots.filter(holds).map(s => s.id -> s).toMap
    val ids = asked.fold(Iterator.empty: Iterator[String])(table.lineage) ++ Iterator(TableContext.NeverWritten).filter(_ => asked.isEmpty)
    def expired = asked.filter(table.hasExpiredAncestors)
      .flatMap(_ => known.snapshots.reverseIterator.find(s => usable.contains(s.id) && table.hasExpired(s.id)))
    ids.flatMap(usable.get(_)).take(1).toList.headOption.orElse(expired)
  }

  /** As `analyzed`, raising METASTORE_NO_STATISTICS. Statistics of file lists alone say nothing about columns. */
  def snapshotWithColumns(asked: Option[String]): Snapshot =
    answeringSnapshot(asked, s => s.computed != "files" || s.filesTotal == 0).getOrElse(throw MetastoreException.noStatistics(name,
      if (manifest.exists(_.snapshots.nonEmpty)) " of columns for this snapshot or one that it was made from" else ""))

  /** Whether an analyzed snapshot is the one that the name now points to. */
  def isCurrent(snapshot: Snapshot): Boolean = isRequested(snapshot, table.current)

  /** Whether an analyzed snapshot is the very one that was asked for, not an ancestor. */
  def isRequested(snapshot: Snapshot, asked: Option[String]): Boolean = snapshot.id == asked.getOrElse(TableContext.NeverWritten)

  /** The leaf that a user calls `column`, names compared as the session compares them. */
  def leaf(session: SparkSession, column: String, among: Seq[Leaf]): Leaf = {
    val same = session.sessionState.conf.resolver
    val parts = scala.util.Try(session.sessionState.sqlParser.parseMultipartIdentifier(column)).getOrElse(Seq(column))
    val under = among.filter(leaf => leaf.path.length >= parts.length && leaf.path.zip(parts).forall { case (a, b) => same(a, b) })
    under.find(_.path.length == parts.length).orElse(among.find(leaf => same(leaf.name, column))).getOrElse(throw under.headOption match {
      case Some(field) => MetastoreException.invalidArgument("column", s"$column is a struct", s" Name a field of it, such as ${field.name}.")
      case None => MetastoreException.columnNotFound(column, name, among.map(_.name))
    })
  }

  private def unknownSnapshot(text: String): MetastoreException =
    if (manifest.exists(_.snapshots.exists(_.id == text))) MetastoreException.invalidArgument("at",
      s"$name no longer has snapshot $text, which was analyzed: it has expired", " Its statistics are shown by metastore.open of the location.")
    else MetastoreException.invalidArgument("at", s"$name has no snapshot $text")

  private def snapshotOf(literal: Literal): Option[String] = literal.dataType match {
    case ByteType | ShortType | IntegerType | LongType => table.snapshot(literal.toString)
    // Spark would take other numbers for seconds.
    case _: NumericType => None
    case TimestampType | TimestampNTZType | DateType => table.snapshotAt(instant(literal).get)
    case _ =>
      val text = Arguments.cast(literal, StringType).toString
      table.snapshot(text).orElse(instant(literal).flatMap(table.snapshotAt))
  }

  private def instant(literal: Literal): Option[Long] = Option(Arguments.cast(literal, TimestampType)).map(_.asInstanceOf[Long])
}

object TableContext {

  /** What stands for the snapshot of a table that was never written. */
  val NeverWritten = "none"

  /** Resolves a name and opens its statistics; reads neither manifest nor objects yet. */
  def of(session: SparkSession, name: String): TableContext = of(session, name, TableLookup.resolve(session, name))

  /** Opens the statistics of a table. */
  def of(session: SparkSession, name: String, table: LakeTable): TableContext = new TableContext(name, table, store(session, table))

  /** Where the statistics of a table are. */
  def store(session: SparkSession, table: TableReference): StatisticsStore = {
    val root = StatisticsStore.rootOf(table.location, MetastoreConf.of(session).store, table.format, table.uuid)
    StatisticsStore.open(root, session.sessionState.newHadoopConf())
  }
}
