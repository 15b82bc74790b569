package org.metastore.spark.tables

import java.lang.ref.WeakReference
import java.util.UUID

import scala.util.Try

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Tables of classes that extend Iceberg's `SparkTable`. Catalogs have such classes for names and properties
 * of their own, or to write elsewhere.
 *
 * Such a table is served if a scan of it is the one that Iceberg builds: a scan of Iceberg's own class, of
 * the same table and snapshot, without a filter, and with all columns of the table's schema. Any other class
 * may hide rows or change values.
 */
private[tables] object IcebergSubclass {

  // Planning needs the answer for the same table several times, and a scan may send a request to the catalog.
  private val last = new ThreadLocal[(WeakReference[Table], Boolean)]

  /**
   * Whether a scan of a table is that of Iceberg.
   *
   * @param inner   the table as Iceberg itself has it
   * @param current the snapshot that is read
   */
  def readsAsIceberg(table: Table, inner: AnyRef, current: => Option[String]): Boolean =
    Option(last.get) match {
      case Some((lastTable, answer)) if lastTable.get eq table => answer
      case _ =>
        val answer = Try(isIcebergScan(scanOf(table), table, inner, current)).getOrElse(false)
        last.set((new WeakReference(table), answer))
        answer
    }

  private def scanOf(table: Table): Scan =
    table.asInstanceOf[SupportsRead].newScanBuilder(CaseInsensitiveStringMap.empty).build()

  private def isIcebergScan(
      scan: Scan,
      table: Table,
      inner: AnyRef,
      current: => Option[String]): Boolean =
    scan.getClass.getName == IcebergMembers.QueryScanClass &&
      identity(Reflection.call[AnyRef](scan, "table")) == identity(inner) &&
      readsAll(Reflection.call[AnyRef](scan, "scan"), current) &&
      columnsOf(scan) == columnsOf(table)

  /**
   * Whether Iceberg's own scan reads all rows of a snapshot. It is null for a table that was never written.
   */
  private def readsAll(icebergScan: AnyRef, snapshot: Option[String]): Boolean =
    if (icebergScan == null) snapshot.isEmpty
    else snapshotOf(icebergScan) == snapshot &&
    Reflection.call[AnyRef](icebergScan, "filter").toString == "true"

  private def identity(icebergTable: AnyRef): (UUID, String) =
    (Reflection.call[UUID](icebergTable, "uuid"), Reflection.call[String](icebergTable, "location"))

  private def snapshotOf(icebergScan: AnyRef): Option[String] = {
    val snapshot = Option(Reflection.call[AnyRef](icebergScan, "snapshot"))
    snapshot.map(Reflection.call[Long](_, "snapshotId").toString)
  }

  private def columnsOf(scan: Scan): Seq[(String, String)] =
    scan.readSchema.fields.toSeq.map(field => (field.name, field.dataType.catalogString))

  private def columnsOf(table: Table): Seq[(String, String)] =
    table.columns.toSeq.map(column => (column.name, column.dataType.catalogString))
}
