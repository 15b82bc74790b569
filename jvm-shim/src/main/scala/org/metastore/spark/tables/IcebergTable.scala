package org.metastore.spark.tables

import java.net.URLDecoder

import scala.collection.JavaConverters._

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.types.StructType

/** An Iceberg table behind Spark's `SparkTable`, by reflection. */
final class IcebergTable private (sparkTable: Table, table: AnyRef) extends LakeTable {
  import Reflection.{call, list}

  override val format: String = "iceberg"
  override lazy val uuid: String = call[java.util.UUID](table, "uuid").toString
  override lazy val location: String = call[String](table, "location")

  override lazy val current: Option[String] = {
    def pinned = Option(call[java.lang.Long](sparkTable, "snapshotId")).map(_.toString)
    def ofBranch = Option(call[String](sparkTable, "branch")).flatMap(reference)
    def head = Option(call[AnyRef](table, "currentSnapshot")).map(id)
    pinned.orElse(ofBranch).orElse(head)
  }

  override def lineage(snapshot: String): Iterator[String] =
    Iterator.iterate(bySnapshotId(snapshot))(_.flatMap(s => Option(call[java.lang.Long](s, "parentId")))
      .flatMap(parent => bySnapshotId(parent.toString))).takeWhile(_.isDefined).map(s => id(s.get))

  override def hasExpired(snapshot: String): Boolean = bySnapshotId(snapshot).isEmpty

  override def hasExpiredAncestors(snapshot: String): Boolean = lineage(snapshot).toSeq.lastOption.flatMap(bySnapshotId)
    .exists(oldest => call[java.lang.Long](oldest, "parentId") != null)

  override def snapshot(text: String): Option[String] = bySnapshotId(text).map(id).orElse(reference(text))

  override def snapshotAt(micros: Long): Option[String] = {
    val history = list(table, "history").filter(entry => call[Long](entry, "timestampMillis") <= Math.floorDiv(micros, 1000L))
    history.lastOption.map(entry => call[Long](entry, "snapshotId").toString)
  }

  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] = {
    val ofSnapshot = snapshot.filterNot(s => current.contains(s)).flatMap(bySnapshotId)
      .flatMap(s => Option(call[java.lang.Integer](s, "schemaId")))
      .flatMap(schemaId => Option(call[java.util.Map[Integer, AnyRef]](table, "schemas").get(schemaId)))
    val schema = ofSnapshot.getOrElse(call[AnyRef](table, "schema"))
    leavesOf(Vector.empty, list(schema, "columns"), sparkSchema(schema))
  }

  override def dataFiles(snapshot: String): Seq[DataFile] = {
    val scan = call[AnyRef](call[AnyRef](table, "newScan"), "useSnapshot", java.lang.Long.valueOf(snapshot))
    val tasks = call[java.lang.Iterable[AnyRef] with AutoCloseable](scan, "planFiles")
    try tasks.asScala.map(liveFile).toVector.distinct finally tasks.close()
  }

  private def liveFile(task: AnyRef): DataFile = {
    val file = call[AnyRef](task, "file")
    DataFile(Reflection.value[CharSequence](file, "location", "path").toString, call[Long](file, "fileSizeInBytes"), Some(call[Long](file, "recordCount")),
      deletedRows(list(task, "deletes")), partition(call[AnyRef](task, "spec"), call[AnyRef](file, "partition")))
  }

  /** Known without reading where nothing deletes, or where a deletion vector of this file says how many. */
  private def deletedRows(deletes: Seq[AnyRef]): Option[Long] =
    if (deletes.isEmpty) Some(0L)
    else if (deletes.forall(isVector)) Some(deletes.map(call[Long](_, "recordCount")).sum)
    else None

  // Releases without the member know no deletion vectors.
  private def isVector(delete: AnyRef) =
    Reflection.has(delete, "contentOffset") && call[AnyRef](delete, "contentOffset") != null // scalastyle:ignore

  private def partition(spec: AnyRef, value: AnyRef): Map[String, String] = {
    val parts = call[String](spec, "partitionToPath", value).split('/').filter(_.contains('='))
    parts.map { part =>
      val at = part.indexOf('=')
      URLDecoder.decode(part.take(at), "UTF-8") -> URLDecoder.decode(part.drop(at + 1), "UTF-8")
    }.toMap
  }

  private def leavesOf(above: Vector[String], fields: Seq[AnyRef], struct: StructType): IndexedSeq[Leaf] =
    fields.zip(struct.fields).toVector.flatMap { case (field, sparkField) =>
      val path = above :+ call[String](field, "name")
      (call[AnyRef](field, "type"), sparkField.dataType) match {
        case (nested, inner: StructType) => leavesOf(path, list(nested, "fields"), inner)
        case (_, leaf) => Vector(Leaf(call[Int](field, "fieldId").toString, path, leaf))
      }
    }

  /** One of the table's Iceberg schemas as Spark shows it. */
  def sparkSchema(schema: AnyRef): StructType =
    Reflection.callStatic[StructType](Reflection.load("org.apache.iceberg.spark.SparkSchemaUtil", sparkTable.getClass.getClassLoader), "convert", schema)

  private def bySnapshotId(text: String): Option[AnyRef] =
    scala.util.Try(text.toLong).toOption.flatMap(snapshots.get)

  private lazy val snapshots: Map[Long, AnyRef] =
    list(table, "snapshots").map(snapshot => call[Long](snapshot, "snapshotId") -> snapshot).toMap

  private def reference(name: String): Option[String] =
    Option(call[java.util.Map[String, AnyRef]](table, "refs").get(name)).map(call[Long](_, "snapshotId").toString)

  private def id(snapshot: AnyRef): String = call[Long](snapshot, "snapshotId").toString
}

object IcebergTable {
  private val SparkTableClass = "org.apache.iceberg.spark.source.SparkTable"
  private val DataTableClass = "org.apache.iceberg.BaseTable"
  private val MetadataTableClass = "org.apache.iceberg.BaseMetadataTable"

  /** Whether Spark's table is an Iceberg table with data of its own. */
  def is(table: Table): Boolean = holds(table, DataTableClass)

  /** Whether Spark's table is one of Iceberg's metadata tables, such as `t.files`: tables of the same class. */
  def isMetadataTable(table: Table): Boolean = holds(table, MetadataTableClass)

  private def holds(table: Table, kind: String): Boolean =
    table.getClass.getName == SparkTableClass && Iterator.iterate[Class[_]](inner(table).getClass)(_.getSuperclass)
      .takeWhile(_ != null).exists(_.getName == kind)

  /** @throws UnsupportedRelease this release of Iceberg is not known */
  def apply(table: Table): IcebergTable = {
    FormatReleases.require(table)
    new IcebergTable(table, inner(table))
  }

  private def inner(table: Table): AnyRef = Reflection.call[AnyRef](table, "table")
}
