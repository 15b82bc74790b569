package org.metastore.spark.scan

import scala.util.Try

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.StructType

import org.metastore.spark.pruning.LiveFiles
import org.metastore.spark.reason.{Indexed, Optional, Reason, ReasonCode}
import org.metastore.spark.statistics.objects.TableIdentity
import org.metastore.spark.tables.{IcebergTable, Reflection}

/** An Iceberg table whose data are scanned. */
private[scan] final class IcebergScan(val spark: Table) {
  private val table = IcebergTable(spark)

  def uuid: String = table.uuid
  def location: String = table.location
  def name: String = spark.name
  def id: TableIdentity =
    TableIdentity(IcebergTable.name, uuid, location, name, table.nameMapping, table.ownFiles)

  /** Whether this and the other are the same snapshot of the same table. */
  def isSameSnapshot(other: IcebergScan): Boolean = uuid == other.uuid && snapshot == other.snapshot

  /** The files of the snapshot that a scan reads. */
  def live(by: String, scan: AnyRef, number: Option[Long], unasked: Seq[Predicate]): LiveFiles =
    new LiveFiles(
      by,
      number,
      () => {
        for {
          snapshot <- IcebergTasks.snapshot(scan).toSeq
          file <- table.dataFiles(Reflection.call[AnyRef](snapshot, "snapshotId").toString)
        } yield file.path -> file.rows
      },
      unasked.map(predicate =>
        Reason(ReasonCode.FormatNotAsked, "format" -> IcebergTable.title, "conjunct" -> textOf(predicate))))

  // Spark fails to print a null of type binary.
  private def textOf(predicate: Predicate): String = Try(predicate.toString).getOrElse(predicate.name)

  /** The snapshot that is read, if there is one. */
  def snapshot: Option[String] = table.current

  /** Finds the key of a column by its path, in the schema whose field ids a scan reads by. */
  def keysOf(scan: AnyRef): Seq[String] => Option[String] = {
    val schema = schemaOf(scan)
    path => schema.flatMap(_.key(path))
  }

  /** The scan's own schema where it has one, else the table's for the snapshot that is read. */
  private def schemaOf(scan: AnyRef): Option[IcebergSchema] = {
    def schemaIfShown(owner: AnyRef, method: String) =
      Try(schemaFrom(owner, method)).toOption.filter(showsSparkSchema)
    schemaIfShown(scan, "schema").orElse(schemaIfShown(spark, "snapshotSchema")).map(new IcebergSchema(_))
  }

  /** The snapshot and those before it, newest first. A catalog may load the earlier ones only on demand. */
  def lineage: Iterator[String] = snapshot.iterator ++ snapshot.iterator.flatMap(table.lineage).drop(1)

  /** The keys of the snapshot's columns by their paths; they need no scan. */
  def keys: Map[Seq[String], String] =
    Indexed.entries(table.leaves(table.current))(leaf => leaf.path -> leaf.key)

  /** Whether the column's type is UUID, which Spark shows as a string. */
  def holdsUuids(key: String): Boolean = table.holdsUuids(key)

  private def schemaFrom(owner: AnyRef, method: String): AnyRef = {
    val schema = Reflection.call[AnyRef](owner, method)
    require(schema.getClass.getName == "org.apache.iceberg.Schema")
    schema
  }

  private def showsSparkSchema(schema: AnyRef): Boolean =
    shape(table.sparkSchema(schema)) == shape(Reflection.call[StructType](spark, "schema"))

  private def shape(schema: StructType) = schema.fields.toSeq.map(f => (f.name, f.dataType.catalogString))
}

private[scan] object IcebergScan {

  /** Finds the Iceberg table behind a relation; None for metadata tables. */
  def fromTable(table: Table): Option[IcebergScan] =
    Optional.when(IcebergTable.is(table))(new IcebergScan(table))
}

/** Finds field ids by the path of a column. */
private[scan] final class IcebergSchema(schema: AnyRef) {

  /** The key of a column in the statistics. */
  def key(path: Seq[String]): Option[String] = fieldId(path).map(_.toString)

  /** The field id of a column or of a field in structs; None in lists and maps, and for unknown names. */
  def fieldId(path: Seq[String]): Option[Int] = {
    val root = Reflection.call[AnyRef](schema, "asStruct")
    var struct = Option(root)
    for (name <- path.init) struct = struct.flatMap(field(_, name)).flatMap(structOf)
    for (parent <- struct; leaf <- field(parent, path.last)) yield Reflection.call[Int](leaf, "fieldId")
  }

  private def field(struct: AnyRef, name: String): Option[AnyRef] =
    Option(Reflection.call[AnyRef](struct, "field", name))

  private def structOf(field: AnyRef): Option[AnyRef] =
    Some(Reflection.call[AnyRef](field, "type")).filter(Reflection.call[Boolean](_, "isStructType"))
}
