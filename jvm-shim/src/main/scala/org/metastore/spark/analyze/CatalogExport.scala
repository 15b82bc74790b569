package org.metastore.spark.analyze

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.estimates.WholeTableStatistics
import org.metastore.spark.reason.{Attempt, Indexed, MetastoreException, VisibleText}
import org.metastore.spark.sql.TableContext
import org.metastore.spark.statistics.columns.TypePromotion
import org.metastore.spark.statistics.objects.{Snapshot, SummaryRow}
import org.metastore.spark.tables.{Leaf, ReadPermission, TableHandle, TableLookup}

/**
 * Writes statistics into the session catalog, which may be Hive's, as Spark's own ANALYZE does. Called over
 * py4j.
 */
object CatalogExport extends Logging {
  private val mapper = new ObjectMapper

  /**
   * Replaces the session catalog's statistics of a table by those of its current snapshot.
   *
   * @return a JSON object: `snapshot`, `rows`, `size_bytes`, `columns`, and the other columns as `left_out`
   * @throws MetastoreException METASTORE_UNSUPPORTED_TABLE, METASTORE_NO_STATISTICS
   */
  def write(session: SparkSession, name: String): String = ReadPermission.asActive(session) {
    val catalog = session.sessionState.catalog
    val handle = TableLookup.find(session, name)
    def notOfCatalog = MetastoreException.unsupportedTable(
      name,
      "it is no table of Spark's session catalog, whose statistics are exported",
      " Other engines read those of Iceberg tables from the table itself: set spark.metastore.iceberg.puffin = true.")
    val target = entryOf(session, handle).getOrElse(throw notOfCatalog)
    val analyzed = TableContext.open(session, name, handle.table)
    val snapshot = wholeSnapshot(analyzed)
    def rowsUnknown = MetastoreException.unsupportedTable(
      name,
      "how many rows it has is not known, for other files change those of its data files",
      " Compact it first.")
    val rows = snapshot.rows.getOrElse(throw rowsUnknown)
    val leaves = analyzed.table.leaves(analyzed.table.current)
    val columns = columnsOf(session.sessionState.conf, analyzed, snapshot, leaves.filter(_.path.length == 1))
    val size = snapshot.liveSizeBytes.getOrElse(snapshot.sizeBytes)
    catalog.alterTableStats(target, Some(CatalogStatistics(size, Some(rows), columns.toMap)))
    val report =
      mapper.createObjectNode.put("snapshot", snapshot.id).put("rows", rows).put("size_bytes", size)
    val exported = columns.map(_._1)
    val names = report.putArray("columns")
    for (name <- exported) names.add(name)
    val leftOut = report.putArray("left_out")
    for (name <- leaves.map(_.path.head).distinct.diff(exported)) leftOut.add(name)
    mapper.writeValueAsString(report)
  }

  /**
   * Replaces the session catalog's statistics of a table that was just analyzed, if it has some. An earlier
   * ANALYZE of Spark wrote them, perhaps for other rows, and DESCRIBE EXTENDED shows them. If the catalog
   * refuses, the old statistics stay.
   */
  def renew(session: SparkSession, name: String): Unit =
    Attempt.recover {
      val entry = entryOf(session, TableLookup.find(session, name))
      val hasStatistics = entry.exists(session.sessionState.catalog.getTableMetadata(_).stats.isDefined)
      if (hasStatistics) write(session, name)
    } { failure =>
      val reason = MetastoreException.firstLine(failure)
      logWarning(VisibleText(s"Spark's statistics of $name are as before: $reason"))
    }

  /** The table's name in the session catalog, if that has it. */
  private def entryOf(session: SparkSession, handle: TableHandle): Option[TableIdentifier] =
    handle.sessionTable.filter(session.sessionState.catalog.tableExists)

  /** The entry of the current snapshot. Raises an error unless every data file is analyzed. */
  private def wholeSnapshot(analyzed: TableContext): Snapshot = {
    val snapshot = analyzed.snapshotWithColumns(analyzed.table.current)
    if (!analyzed.isCurrent(snapshot)) throw analyzed.noStatistics(" of its current snapshot")
    val missing = snapshot.filesTotal - snapshot.files
    if (missing > 0) throw analyzed.noStatistics(s" of $missing of its ${snapshot.filesTotal} data files")
    snapshot
  }

  private def columnsOf(conf: SQLConf, analyzed: TableContext, snapshot: Snapshot, leaves: Seq[Leaf]) = {
    val summaries =
      Indexed.by(analyzed.store.tableSummary(snapshot))(row => snapshot.columns(row.column).key)
    for {
      leaf <- leaves
      row <- summaries.get(leaf.key)
      if row.files < snapshot.filesTotal
    } throw analyzed.noStatistics(
      s" of column ${leaf.name} in ${snapshot.filesTotal - row.files} of its ${snapshot.filesTotal} data files")
    for {
      leaf <- leaves
      row <- summaries.get(leaf.key)
      use = TypePromotion.fromEntry(snapshot.columns(row.column), leaf.dataType)
      if snapshot.exact && use != TypePromotion.Nothing
      bins = if (conf.histogramEnabled) exportedBins(analyzed, snapshot, row, conf.histogramNumBins)
      else None
      stat <- WholeTableStatistics.column(row, leaf.dataType, bins)
    } yield leaf.path.head -> stat.toCatalogColumnStat(leaf.path.head, leaf.dataType)
  }

  private def exportedBins(analyzed: TableContext, snapshot: Snapshot, row: SummaryRow, most: Int) =
    analyzed.histogram(snapshot.histograms, row, row.column, file = None).map(_ -> most)
}
