package org.metastore.spark.tables

import java.net.URLDecoder
import java.nio.ByteBuffer
import java.util.{Locale, UUID}

import scala.collection.mutable
import scala.collection.JavaConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{DataType, Decimal, DecimalType, StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.reason.{Indexed, Optional, SqlName}
import org.metastore.spark.statistics.objects.{NameMapping, StoreFiles}

/** An Iceberg table behind Spark's `SparkTable`, by reflection. */
final class IcebergTable private (sparkTable: Table, table: AnyRef) extends LakeTable {
  import IcebergMembers.pathOf
  import Reflection.{call, list}

  override val format: String = IcebergTable.name
  override lazy val uuid: String = call[java.util.UUID](table, "uuid").toString
  override lazy val location: String = call[String](table, "location").stripSuffix("/")

  override def qualifiedLocation: String =
    if (!location.startsWith("/")) location
    else {
      val qualified = LakeTable.qualify(new Path(location), SparkSession.active).toString
      // Iceberg's own metadata spell a local location without a scheme.
      if (qualified.startsWith("file:")) location else qualified
    }

  override lazy val current: Option[String] = {
    val pinned = call[java.lang.Long](sparkTable, "snapshotId")
    def branch = reference(call[String](sparkTable, "branch"))
    if (pinned != null) Some(pinned.toString) else branch.orElse(id(call[AnyRef](table, "currentSnapshot")))
  }

  override def lineage(snapshot: String): Iterator[String] = {
    val snapshots = Iterator.iterate(bySnapshotId(snapshot))(_.flatMap(parentOf)).takeWhile(_.isDefined)
    snapshots.flatMap(snapshot => id(snapshot.get))
  }

  private def parentOf(snapshot: AnyRef): Option[AnyRef] = {
    val parent = call[java.lang.Long](snapshot, "parentId")
    if (parent == null) None else bySnapshotId(parent.toString)
  }

  override def hasExpired(snapshot: String): Boolean = bySnapshotId(snapshot).isEmpty

  override def hasExpiredAncestors(snapshot: String): Boolean = {
    val oldest = lineage(snapshot).toSeq.lastOption.flatMap(bySnapshotId)
    oldest.exists(call[java.lang.Long](_, "parentId") != null)
  }

  override def snapshot(text: String): Option[String] = bySnapshotId(text).flatMap(id).orElse(reference(text))

  override def snapshotAt(micros: Long): Option[String] = {
    val millis = Math.floorDiv(micros, 1000L)
    val earlier = list(table, "history").filter(call[Long](_, "timestampMillis") <= millis)
    earlier.lastOption.flatMap(id)
  }

  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] = {
    val schemaOfSnapshot = snapshot match {
      case Some(old) if !current.contains(old) => schemaOf(old)
      case _ => schema
    }
    leavesOf(Vector.empty, list(schemaOfSnapshot, "columns"), sparkSchema(schemaOfSnapshot))
  }

  /** The schema of a snapshot, or the table's where the snapshot's is unknown. */
  private def schemaOf(snapshot: String): AnyRef = {
    val schemas = call[java.util.Map[Integer, AnyRef]](table, "schemas")
    schemaIdOf(snapshot).fold(schema)(schemas.getOrDefault(_, schema))
  }

  private def schemaIdOf(snapshot: String): Option[Integer] =
    bySnapshotId(snapshot).flatMap(entry => Option(call[Integer](entry, "schemaId")))

  private lazy val schema = call[AnyRef](table, "schema")

  override def dataFiles(snapshot: String): Seq[DataFile] = plan(snapshot) { task =>
    val file = call[AnyRef](task, "file")
    liveFile(
      file,
      TaskDeletes.deletesOf(task),
      partition(specOf(task, file), call[AnyRef](file, "partition")))
  }.distinct

  /** Plans a scan of a snapshot: a value for the task of each data file. */
  private def plan[T](snapshot: String)(valueOf: AnyRef => T): Vector[T] = {
    val scan = call[AnyRef](call[AnyRef](table, "newScan"), "useSnapshot", java.lang.Long.valueOf(snapshot))
    val tasks = call[java.lang.Iterable[AnyRef] with AutoCloseable](scan, "planFiles")
    try tasks.asScala.iterator.map(valueOf).toVector
    finally tasks.close()
  }

  private def liveFile(file: AnyRef, deletes: Array[AnyRef], partition: Map[String, String]): DataFile = {
    val rows = call[Long](file, "recordCount")
    DataFile(
      pathOf(file),
      call[Long](file, "fileSizeInBytes"),
      Some(rows),
      TaskDeletes.countRows(deletes, rows),
      partition)
  }

  /** The partition spec of a data file: each task would parse the whole schema for its own. */
  private def specOf(task: AnyRef, file: AnyRef): AnyRef =
    Option(specs.get(call[Integer](file, "specId"))).getOrElse(call[AnyRef](task, "spec"))

  private lazy val specs = call[java.util.Map[Integer, AnyRef]](table, "specs")

  private def partition(spec: AnyRef, value: AnyRef): Map[String, String] = {
    val parts = call[String](spec, "partitionToPath", value).split('/').filter(_.contains('='))
    Indexed.entries(parts) { part =>
      val end = part.indexOf('=')
      URLDecoder.decode(part.take(end), "UTF-8") -> URLDecoder.decode(part.drop(end + 1), "UTF-8")
    }
  }

  override def properties: Map[String, String] =
    call[java.util.Map[String, String]](table, "properties").asScala.toMap

  override def refresh(): Boolean = {
    val before = metadataFile
    call[AnyRef](table, "refresh")
    metadataFile != before
  }

  override def metadataFile: Option[String] = {
    val metadata = call[AnyRef](call[AnyRef](table, "operations"), "current")
    Option(call[String](metadata, "metadataFileLocation"))
  }

  override def nameMapping: Option[String] = properties.get(NameMapping.Property)

  override def ownFiles: Option[StoreFiles] = fileIo(location)

  override def storageProperties(location: String): Map[String, String] =
    fileIo(location).fold(Map.empty[String, String])(_.properties(location))

  override def storagePrefixes: Seq[String] = fileIo(location).fold(Seq.empty[String])(_.prefixes)

  override def folderAccess(uri: String): Option[FolderAccess] =
    for (files <- fileIo(uri)) yield new IcebergFolderAccess(files.reader(uri), uri)

  private def fileIo(location: String) = IcebergFileIo.fromTable(table, location)

  override def refusal: Option[TableRefusal] = {
    // In newer releases `snapshotId` is set for every table, and `timeTravel` only if the query selected one.
    def selected =
      try Reflection.value[AnyRef](sparkTable, "timeTravel")
      catch { case NonFatal(_) => call[AnyRef](sparkTable, "snapshotId") }
    if (selected == null && call[AnyRef](sparkTable, "branch") == null) None
    else Some(TableRefusal(
      "it is a branch, a tag or a snapshot, and ANALYZE reads a table where its main branch is",
      isSelected = true))
  }

  override def facts: SnapshotFacts = {
    val fields = mutable.Map.empty[Integer, Seq[PartitionField]]
    val deletes = new IcebergDeletes(nameMapping)
    def factsOf(task: AnyRef): FileFacts = {
      val file = call[AnyRef](task, "file")
      val specFields =
        fields.getOrElseUpdate(call[Integer](file, "specId"), partitionFields(specOf(task, file)))
      fileFacts(file, TaskDeletes.deletesOf(task), deletes, specFields)
    }
    val files = current.toSeq.flatMap(plan(_)(factsOf))
    SnapshotFacts(
      current,
      files.sortBy(_.location),
      hasCurrentSchema = current.flatMap(schemaIdOf).forall(_ == call[Integer](schema, "schemaId")))
  }

  private def fileFacts(
      file: AnyRef,
      deletesOfFile: Array[AnyRef],
      deletes: IcebergDeletes,
      fields: Seq[PartitionField]): FileFacts = {
    val partition = call[AnyRef](file, "partition")
    val partitionValues = Seq.newBuilder[(StructField, Any)]
    val constants = Map.newBuilder[String, String]
    for (field <- fields) {
      val ordinal = Integer.valueOf(field.ordinal)
      val value = catalyst(call[AnyRef](partition, "get", ordinal, classOf[Object]), field.column.dataType)
      partitionValues += field.column -> value
      for (key <- field.identityOf) constants += key -> StoredText.render(value, field.column.dataType).orNull
    }
    FileFacts(
      live = liveFile(file, deletesOfFile, LakeTable.partitionTexts(partitionValues.result())),
      location = pathOf(file),
      deletes = deletes.digest(deletesOfFile),
      hasEqualityDeletes = deletes.deleteByValue(deletesOfFile),
      format = call[AnyRef](file, "format").toString.toLowerCase(Locale.ROOT),
      isEncrypted = call[AnyRef](file, "keyMetadata") != null,
      constants = FileConstants(constants.result()))
  }

  /** The partition fields of a spec whose source columns are still in the schema. */
  private def partitionFields(spec: AnyRef): Seq[PartitionField] =
    for {
      (field, ordinal) <- list(spec, "fields").zipWithIndex
      partitionField <- partitionField(field, ordinal)
    } yield partitionField

  private def partitionField(field: AnyRef, ordinal: Int): Option[PartitionField] = {
    val transform = call[AnyRef](field, "transform")
    val source = call[Integer](field, "sourceId")
    val sourceType = call[AnyRef](schema, "findType", source)
    if (call[Boolean](transform, "isVoid") || sourceType == null) None
    else {
      val kind = sparkType(call[AnyRef](transform, "getResultType", sourceType))
      // A column inside a struct is read from the file: the struct may be null.
      val isConstant = call[Boolean](transform, "isIdentity") && topLevel(source)
      val identityOf = Optional.when(isConstant)(source.toString)
      Some(PartitionField(StructField(call[String](field, "name"), kind), ordinal, identityOf))
    }
  }

  private lazy val topLevel = Indexed.set(list(schema, "columns"))(call[Int](_, "fieldId"))

  override def defaults: Map[String, String] = {
    val texts = Map.newBuilder[String, String]
    for (leaf <- leaves(None); text <- defaultOf(leaf)) texts += leaf.key -> text
    texts.result()
  }

  private def defaultOf(leaf: Leaf): Option[String] = {
    val field = call[AnyRef](schema, "findField", Integer.valueOf(leaf.key))
    if (!Reflection.has(field, "initialDefault")) None
    else StoredText.render(catalyst(call[AnyRef](field, "initialDefault"), leaf.dataType), leaf.dataType)
  }

  /** Whether a column holds UUIDs, which Spark shows as texts. */
  def holdsUuids(key: String): Boolean =
    Option(call[AnyRef](schema, "findType", Integer.valueOf(key))).exists(_.toString == "uuid")

  override def publish(snapshot: String, sketches: Seq[PublishedSketch]): Set[String] =
    new IcebergStatisticsFile(table, snapshot.toLong).publish(sketches)

  /** A value of Iceberg's as Catalyst has it. */
  private def catalyst(value: AnyRef, kind: DataType): Any = (value, kind) match {
    case (number: java.math.BigDecimal, d: DecimalType) => Decimal(number, d.precision, d.scale)
    case (text @ (_: CharSequence | _: UUID), _) => UTF8String.fromString(text.toString)
    case (bytes: ByteBuffer, _) =>
      val copy = new Array[Byte](bytes.remaining)
      bytes.duplicate().get(copy)
      copy
    case (other, _) => other
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
    Reflection.callStatic[StructType](schemaUtil, "convert", schema)

  private def sparkType(kind: AnyRef): DataType = Reflection.callStatic[DataType](schemaUtil, "convert", kind)

  /** Columns that Spark has no type for, each with its type. */
  private def unreadableColumns(above: Vector[String], fields: Seq[AnyRef]): Seq[String] =
    fields.flatMap { field =>
      val (path, kind) = (above :+ call[String](field, "name"), call[AnyRef](field, "type"))
      if (Try(sparkType(kind)).isSuccess) Nil
      else if (call[Boolean](kind, "isStructType")) unreadableColumns(path, list(kind, "fields"))
      else Seq(s"${SqlName(path)} of type $kind")
    }

  private lazy val schemaUtil =
    Reflection.load("org.apache.iceberg.spark.SparkSchemaUtil", sparkTable.getClass.getClassLoader)

  private def bySnapshotId(text: String): Option[AnyRef] =
    Try(text.toLong).toOption.flatMap(snapshots.get)

  private lazy val snapshots: Map[Long, AnyRef] =
    Indexed.by(list(table, "snapshots"))(call[Long](_, "snapshotId"))

  /** The id of the snapshot to which a branch or a tag points. */
  private def reference(name: String): Option[String] =
    if (name == null) None else id(call[java.util.Map[String, AnyRef]](table, "refs").get(name))

  /**
   * The id of a snapshot, or of that to which a reference or an entry of the history points; None for null.
   */
  private def id(snapshot: AnyRef): Option[String] =
    if (snapshot == null) None else Some(call[Long](snapshot, "snapshotId").toString)
}

/**
 * A field of a partition spec.
 *
 * @param shown      the field as Spark shows it
 * @param place      its place in the spec
 * @param identityOf key of the column whose value it is in all rows of a data file
 */
private final case class PartitionField(column: StructField, ordinal: Int, identityOf: Option[String])

object IcebergTable extends TableFormat {
  override val name: String = "iceberg"
  private val SparkTableClass = "org.apache.iceberg.spark.source.SparkTable"

  private val DataTableClass = "org.apache.iceberg.BaseTable"
  private val MetadataTableClass = "org.apache.iceberg.BaseMetadataTable"

  /** Whether Spark's table is an Iceberg table with data of its own. */
  override def is(table: Table): Boolean = holds(table, DataTableClass)

  override def open(table: Table): Option[LakeTable] = Optional.when(is(table))(IcebergTable(table))

  override def refreshCached(committed: Table, cached: => Table): Unit =
    if (is(committed)) {
      val table = apply(cached)
      if (table.metadataFile != apply(committed).metadataFile) table.refresh()
    }

  override def openUncached(relation: DataSourceV2Relation): Option[LakeTable] =
    for {
      catalog <- relation.catalog
      identifier <- relation.identifier if is(relation.table)
      table <- IcebergCatalogs.load(catalog, identifier)
    } yield new IcebergTable(relation.table, table)

  /**
   * Whether Spark's table is one of Iceberg's metadata tables, such as `t.files`: tables of the same class.
   */
  override def isMetadataTable(table: Table): Boolean = holds(table, MetadataTableClass)

  override def isCatalog(catalog: CatalogPlugin): Boolean =
    catalog.getClass.getName == "org.apache.iceberg.spark.SparkCatalog"
  override def hasPaths: Boolean = false

  // A metadata file that is gone; what a catalog forbids is not among these.
  override def isUnreadable(e: Exception): Boolean =
    isOfType(e) || e.getClass.getName.startsWith("org.apache.iceberg.exceptions.") &&
      !Forbidden(e.getClass.getSimpleName)

  override def isMissing(e: Throwable): Boolean =
    e.getClass.getName == "org.apache.iceberg.exceptions.NoSuchTableException"

  private val Forbidden = Set("ForbiddenException", "NotAuthorizedException")

  /** Whether it was thrown because Spark has no type for a column. */
  private def isOfType(e: Exception): Boolean =
    e.isInstanceOf[UnsupportedOperationException] && e.getStackTrace.exists(
      _.getClassName == "org.apache.iceberg.spark.SparkSchemaUtil")

  override def unreadableColumns(table: Table): Seq[String] =
    if (!is(table)) Nil
    else {
      val iceberg = unchecked(table)
      iceberg.unreadableColumns(Vector.empty, Reflection.list(iceberg.schema, "columns"))
    }

  override val rowLevelNodes: Set[String] =
    Set("ReplaceIcebergData", "MergeIntoIcebergTable", "UpdateIcebergTable", "DeleteFromIcebergTable")

  // Procedures that make data files live which may be new to us; the first argument of each is the table.
  private val ProcedurePackage = "org.apache.iceberg.spark.procedures."
  private val procedures = Set(
    s"${ProcedurePackage}RewriteDataFilesProcedure",
    s"${ProcedurePackage}AddFilesProcedure",
    s"${ProcedurePackage}CherrypickSnapshotProcedure",
    s"${ProcedurePackage}PublishChangesProcedure",
    s"${ProcedurePackage}FastForwardBranchProcedure")

  override def writtenBy(call: LogicalPlan): Option[(TableCatalog, Identifier)] =
    for {
      procedure <- procedureOf(call) if procedures(procedure.getClass.getName)
      table <- Reflection.value[Seq[Expression]](call, "args").headOption
    } yield (
      Reflection.call[TableCatalog](procedure, "tableCatalog"),
      Reflection.call[Identifier](procedure, "toIdentifier", table.eval().toString, "table"))

  private def procedureOf(call: LogicalPlan): Option[AnyRef] =
    Try(Reflection.value[AnyRef](call, "procedure")).toOption.map {
      case sparkCall: LogicalPlan => Reflection.value[AnyRef](sparkCall, "procedure")
      case icebergCall => icebergCall // on Spark 3.5
    }

  override def isTemporary(catalog: CatalogPlugin): Boolean =
    catalog.getClass.getName == "org.apache.iceberg.spark.SparkCachedTableCatalog"

  override val optimizerDefaults: Map[String, String] =
    Map("spark.sql.iceberg.report-column-stats" -> "false")

  private def holds(table: Table, kind: String): Boolean =
    isOrExtends(table, SparkTableClass) && isOrExtends(inner(table), kind) &&
      (table.getClass.getName == SparkTableClass || IcebergSubclass.readsAsIceberg(
        table,
        inner(table),
        unchecked(table).current))

  private def isOrExtends(instance: AnyRef, name: String): Boolean =
    Supertypes.classesOf(instance.getClass).exists(_.getName == name)

  /** @throws UnsupportedRelease this release of Iceberg is not known */
  def apply(table: Table): IcebergTable = {
    FormatReleases.require(table)
    unchecked(table)
  }

  private[tables] def unchecked(table: Table): IcebergTable = new IcebergTable(table, inner(table))

  private[tables] def inner(table: Table): AnyRef = Reflection.call[AnyRef](table, "table")
}
