package org.metastore.spark.tables

import java.sql.Timestamp

import scala.collection.mutable
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{StructField, StructType}

import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.objects.{HadoopFiles, StoreFiles}

/**
 * A Delta table at the version that its name stands for, by reflection on Delta's own log and snapshots:
 * whatever Delta reads (checkpoints of any kind, coordinated commits, deletion vectors) is read by Delta.
 */
final class DeltaTable private (head: AnyRef) extends LakeTable {
  import DeltaTable.{FieldId, MappingMode}
  import Reflection.call

  private val log = call[AnyRef](head, "deltaLog")
  private val metadata = call[AnyRef](head, "metadata")

  override val format: String = DeltaTable.name
  override lazy val uuid: String = call[String](metadata, "id")

  /** The root of the table with the scheme of its file system. */
  override lazy val location: String = root.toString

  private lazy val root = call[Path](log, "dataPath")

  // A table that was never written has a log without versions: -1.
  override lazy val current: Option[String] = Some(version(head)).filter(_ >= 0).map(_.toString)

  override def lineage(snapshot: String): Iterator[String] =
    Iterator.iterate(snapshot.toLong)(_ - 1).takeWhile(_ >= 0).map(_.toString)

  override def snapshot(text: String): Option[String] =
    for (number <- Try(text.toLong).toOption if number >= 0 && number <= version(newest))
      yield number.toString

  override def snapshotAt(micros: Long): Option[String] = {
    val commits = call[scala.collection.Seq[AnyRef]](call[AnyRef](log, "history"), "getHistory", None)
    val versions = for {
      commit <- commits
      if call[Timestamp](commit, "timestamp").getTime <= Math.floorDiv(micros, 1000L)
      number <- call[Option[Any]](commit, "version")
    } yield number.toString.toLong
    Optional.when(versions.nonEmpty)(versions.max.toString)
  }

  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] =
    DeltaTable.walk(schema(snapshot)).map(_.toLeaf)

  /**
   * Columns by which the files are partitioned, as the log names them, to the names in the table's schema.
   */
  private def partitionNames(schema: StructType): Map[String, String] =
    Indexed.entries(schema.fields)(field => DeltaTable.physicalName(field) -> field.name)

  override def dataFiles(snapshot: String): Seq[DataFile] = filesOf(snapshot).map(_.live)

  override def facts: SnapshotFacts = SnapshotFacts(current, current.toSeq.flatMap(filesOf))

  private def filesOf(snapshot: String): Seq[FileFacts] = {
    val names = partitionNames(schema(Some(snapshot)))
    val added = collect(call[Dataset[AnyRef]](at(snapshot), "allFiles"))
    added.toSeq.map(file(_, names)).sortBy(_.live.path)
  }

  /**
   * Delta spreads the state of the smallest table over 50 partitions: a task for each core reads all of them.
   */
  private def collect(state: Dataset[AnyRef]): Array[AnyRef] =
    state.coalesce(state.sparkSession.sparkContext.defaultParallelism).collect()

  /** Entries of Delta's log as data files. */
  def files(added: scala.collection.Seq[AnyRef]): Seq[DataFile] = {
    val names = partitionNames(schema(None))
    added.iterator.map(file(_, names).live).toList
  }

  /** The schema of a snapshot with the physical names in its metadata. */
  def schema(snapshot: Option[String]): StructType =
    call[StructType](snapshot.fold(metadata)(s => call[AnyRef](at(s), "metadata")), "schema")

  override def plansCommandsLate: Boolean = true

  override def properties: Map[String, String] = call[Map[String, String]](metadata, "configuration")

  /** Hadoop's settings among the options of the table or of its reader. */
  override def storageProperties(location: String): Map[String, String] = hadoopOptions

  private lazy val hadoopOptions = call[Map[String, String]](log, "options")

  override def ownFiles: Option[StoreFiles] =
    Optional.when(hadoopOptions.nonEmpty)(new HadoopFiles(OwnFileSystems.get(log, root, hadoopConf)))

  private def hadoopConf = call[Configuration](log, "newDeltaHadoopConf")

  override def partitionColumns: Seq[String] =
    call[scala.collection.Seq[String]](metadata, "partitionColumns").toList

  override def fieldIds: Map[String, Long] =
    if (!properties.getOrElse(MappingMode, "none").equalsIgnoreCase("id")) Map.empty
    else Indexed.entries(DeltaTable.walk(schema(None))) { leaf =>
      Leaf.key(leaf.names) -> leaf.field.metadata.getLong(FieldId)
    }

  private def file(added: AnyRef, names: Map[String, String]): FileFacts = {
    val path = new Path(call[java.net.URI](added, "pathAsUri"))
    val vector = Option(call[AnyRef](added, "deletionVector"))
    val partition =
      for ((name, value) <- call[Map[String, String]](added, "partitionValues"))
        yield names.getOrElse(name, name) -> value
    val rows = DeltaRowCount.parse(call[String](added, "stats"))
    val live = DataFile(
      LakeTable.pathInTable(path, root),
      call[Long](added, "size"),
      rows,
      DataFile.deletedRows(vector.fold(0L)(call[Long](_, "cardinality")), rows),
      partition)
    FileFacts(live, new Path(root, path).toString, vector.map(call[String](_, "uniqueId")))
  }

  private def version(snapshot: AnyRef): Long = call[Long](snapshot, "version")

  private val snapshots = mutable.HashMap.empty[String, AnyRef]

  private def at(snapshot: String): AnyRef =
    if (current.contains(snapshot)) head
    else snapshots.getOrElseUpdate(snapshot, load(snapshot.toLong))

  private def load(version: Long): AnyRef =
    Reflection.callWithDefaults[AnyRef](log, "getSnapshotAt", Long.box(version))

  private lazy val newest: AnyRef = Reflection.callWithDefaults[AnyRef](log, "update")
}

object DeltaTable extends TableFormat {
  import Reflection.call

  override val name: String = "delta"
  private val TableClass = "org.apache.spark.sql.delta.catalog.DeltaTableV2"
  private val KernelTableClass = "io.delta.spark.internal.v2.catalog.DeltaV2Table"
  private val IndexPackage = "org.apache.spark.sql.delta."
  private val PhysicalName = "delta.columnMapping.physicalName"
  private val MappingMode = "delta.columnMapping.mode"
  private val FieldId = "delta.columnMapping.id"

  /** Whether Spark's table is a Delta table. */
  override def is(table: Table): Boolean = table.getClass.getName == TableClass

  override def open(table: Table): Option[LakeTable] = Optional.when(is(table))(DeltaTable(table))

  override def otherReader(table: Table): Option[String] =
    Optional.when(table.getClass.getName == KernelTableClass) {
      "Delta's V2 reader (spark.databricks.delta.v2.enableMode = STRICT)"
    }

  override def open(relation: LogicalRelation): Option[LakeTable] =
    for (files <- FileRelation.unapply(relation) if is(files)) yield DeltaTable(files)

  override def reads(relation: LogicalRelation): Boolean = FileRelation.unapply(relation).exists(is(_))

  override def isNotFound(e: Exception): Boolean =
    Option(e.getMessage).exists(text => NotFound.exists(code => text.startsWith(s"[$code]")))

  private val NotFound =
    Seq("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND")

  override val rules: Seq[String] = Seq(IndexPackage)

  private val writes = Set(
    "WriteIntoDelta",
    "CreateDeltaTableCommand",
    "MergeIntoCommand",
    "UpdateCommand",
    "DeleteCommand",
    "OptimizeTableCommand",
    "RestoreTableCommand",
    "CloneTableCommand",
    "DeltaReorgTableCommand")

  override def isWrite(command: LogicalPlan): Boolean =
    command.getClass.getName.startsWith(s"${IndexPackage}commands.") && writes(command.getClass.getSimpleName)
  override val sink: Option[String] = Some("DeltaSink")

  /** The properties in the log's last snapshot in memory, which the writer has just read. */
  override def propertiesAt(
      session: SparkSession,
      path: Path,
      options: Map[String, String]): Map[String, String] = {
    val logs = Reflection.load(s"${IndexPackage}DeltaLog", session.sharedState.jarClassLoader)
    val log = Reflection.callStatic[AnyRef](logs, "forTable", session, path, options)
    call[Map[String, String]](
      call[AnyRef](call[AnyRef](log, "unsafeVolatileSnapshot"), "metadata"),
      "configuration")
  }

  override val metadataAnswers: Option[String] = Some("spark.databricks.delta.optimizeMetadataQuery.enabled")

  /** @throws UnsupportedRelease this release of Delta is not known */
  def apply(table: Table): DeltaTable = {
    FormatReleases.require(table)
    new DeltaTable(Reflection.call[AnyRef](table, "initialSnapshot"))
  }

  /**
   * Whether a relation is the one that Delta's analysis makes: one version of a table, before any file was
   * chosen.
   */
  def is(relation: HadoopFsRelation): Boolean =
    relation.location.getClass.getName == s"${IndexPackage}files.TahoeLogFileIndex"

  def apply(relation: HadoopFsRelation): DeltaTable = fromIndex(relation.location)

  /** The table of a file index at the version that the index reads. */
  def fromIndex(index: FileIndex): DeltaTable = new DeltaTable(snapshotOf(index))

  private def snapshotOf(index: FileIndex): AnyRef = {
    FormatReleases.require(index)
    index.getClass.getSimpleName match {
      case "PreparedDeltaFileIndex" =>
        Reflection.call[AnyRef](Reflection.call[AnyRef](index, "preparedScan"), "scannedSnapshot")
      case "TahoeBatchFileIndex" => Reflection.call[AnyRef](index, "snapshot")
      case _ => Reflection.call[AnyRef](index, "getSnapshot")
    }
  }

  /**
   * The key of a column or of a field inside structs, in a schema that has the physical names. None inside
   * lists and maps, and for unknown names.
   */
  def key(schema: StructType, path: Seq[String], same: (String, String) => Boolean): Option[String] = {
    def names(struct: StructType, path: Seq[String]): Option[Vector[String]] =
      struct.fields.filter(f => same(f.name, path.head)) match {
        case Array(field) if path.length == 1 => Some(Vector(physicalName(field)))
        case Array(field) => field.dataType match {
            case inner: StructType => names(inner, path.tail).map(physicalName(field) +: _)
            case _ => None
          }
        case _ => None
      }
    names(schema, path).map(Leaf.key)
  }

  private def walk(schema: StructType) = Leaf.walk(schema, physicalName)

  private def physicalName(field: StructField): String =
    if (field.metadata.contains(PhysicalName)) field.metadata.getString(PhysicalName)
    else field.name
}
