package org.metastore.spark.tables

import java.time.Instant
import java.time.format.DateTimeFormatter

import scala.collection.mutable
import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{StringType, StructField, StructType}

import org.metastore.spark.reason.{Indexed, Optional, Reason, ReasonCode}

/**
 * A Hudi table at the instant that its name stands for, by reflection on Hudi's own file index: whatever Hudi
 * reads (table versions, archived timelines, the metadata table) is read by Hudi. Its snapshots are instants.
 */
final class HudiTable private (relation: HadoopFsRelation) extends LakeTable {
  import Reflection.call

  private val index = relation.location
  private val metaClient = call[AnyRef](index, "metaClient")
  private val config = call[AnyRef](metaClient, "getTableConfig")
  private val root: Path = HudiTable.root(relation)

  override val format: String = HudiTable.name

  /** Hudi gives tables no identity of their own, and data files names that are never given twice. */
  override lazy val uuid: String = LakeTable.uuidOf(root)
  override lazy val location: String = root.toString

  override lazy val current: Option[String] = HudiMembers.asOf(index) match {
    case Some(instant) => lastUpTo(instant).orElse(Some(instant))
    case None =>
      Reflection.option[AnyRef](call[AnyRef](index, "getLatestCompletedInstant")).map(requestedTime)
  }

  /** Completed instants that changed data and are not archived, oldest first. */
  private lazy val instants: Seq[String] = {
    val completed = call[AnyRef](call[AnyRef](metaClient, "getCommitsTimeline"), "filterCompletedInstants")
    call[java.util.List[AnyRef]](completed, "getInstants").asScala.map(requestedTime).sorted.toList
  }

  /** The last instant that is not after another one. */
  private def lastUpTo(bound: String): Option[String] = instants.takeWhile(_ <= bound).lastOption

  private def requestedTime(instant: AnyRef): String =
    Reflection.value[String](instant, "requestedTime", "getTimestamp")

  override def lineage(snapshot: String): Iterator[String] =
    Iterator.single(snapshot) ++ instants.reverseIterator.filter(_ < snapshot)

  override def hasExpired(snapshot: String): Boolean = !instants.contains(snapshot)

  override def hasExpiredAncestors(snapshot: String): Boolean =
    HudiMembers.list(
      HudiTable.path(call[AnyRef](metaClient, "getArchivePath")),
      relation.sparkSession).nonEmpty

  override def snapshot(text: String): Option[String] = instants.find(_ == text)

  override def snapshotAt(micros: Long): Option[String] = {
    val zone = call[java.time.ZoneId](call[AnyRef](config, "getTimelineTimezone"), "getZoneId")
    val moment =
      Instant.ofEpochSecond(Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000)
    val bound = HudiTable.InstantFormat.format(moment.atZone(zone))
    lastUpTo(bound)
  }

  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] =
    HudiTable.leaves(snapshot.fold(relation)(at))

  private lazy val columns = HudiColumns.readOrByName(relation)

  override def dataFiles(snapshot: String): Seq[DataFile] = filesOf(slicesOf(snapshot)).map(_.live)

  override def refusal: Option[TableRefusal] = HudiTable.refusal(relation).map(TableRefusal(_))

  override def isKeptBySession: Boolean = true

  override def facts: SnapshotFacts = {
    val slices = if (current.isEmpty) Nil else slicesOf(current.get)
    SnapshotFacts(current, filesOf(slices), hasOtherRows = slices.exists(_.baseFile.isEmpty))
  }

  private def slicesOf(snapshot: String): Seq[HudiSlice] = HudiTable.slices(at(snapshot))

  private def filesOf(slices: Seq[HudiSlice]): Seq[FileFacts] = {
    val files = for (slice <- slices; base <- slice.baseFile) yield file(slice, base)
    files.sortBy(_.live.path)
  }

  private def file(slice: HudiSlice, base: AnyRef): FileFacts = {
    val path = new Path(call[String](base, "getPath"))
    val live = DataFile(
      LakeTable.pathInTable(path, root),
      call[Long](base, "getFileSize"),
      rows = None,
      deletedRows = Optional.when(slice.unversionedLogFiles.isEmpty)(0L),
      slice.partition,
      modified = slice.version)
    val inFile = columns.inFile(call[String](base, "getCommitTime"))
    FileFacts(
      live,
      location = new Path(root, path).toString,
      deletes = slice.unversionedLogFiles,
      constants = inFile.constants,
      names = inFile.names)
  }

  override def properties: Map[String, String] =
    call[java.util.Map[String, String]](config, "propsMap").asScala.toMap

  /** The columns whose values are only in paths; data files have the values of all other columns. */
  override def partitionColumns: Seq[String] =
    if (properties.getOrElse(HudiTable.Dropped, "false").equalsIgnoreCase("true"))
      HudiTable.partitionColumns(index)
    else Nil

  // A catalog lets every column be null; whoever reads the path has what writers declared.
  override lazy val requiredColumns: Set[String] = {
    val schema = relation.sparkSession.read.format("hudi").load(location).schema
    columns.renamed ++ requiredLeaves(schema, Vector.empty, nullable = true)
  }

  private def requiredLeaves(struct: StructType, above: Vector[String], nullable: Boolean): Seq[String] =
    struct.fields.toSeq.flatMap { field =>
      val path = above :+ field.name
      val mayBeNull = nullable && field.nullable
      field.dataType match {
        case inner: StructType => requiredLeaves(inner, path, mayBeNull)
        case _ => if (mayBeNull) Nil else Seq(Leaf.key(path))
      }
    }

  private val relations = mutable.HashMap.empty[String, HadoopFsRelation]

  /** The relation that reads a snapshot. */
  private def at(snapshot: String): HadoopFsRelation =
    if (current.contains(snapshot)) relation
    else relations.getOrElseUpdate(snapshot, load(snapshot))

  private def load(snapshot: String): HadoopFsRelation = {
    val reader = relation.sparkSession.read.format("hudi").option(HudiTable.AsOf, snapshot)
    val table = reader.option(HudiTable.ById, columns.areById).load(location)
    table.queryExecution.analyzed.collectFirst { case FileRelation(files) => files }.get
  }
}

/** A base file with its log files, or log files alone, and the values of its partition as text. */
private final class HudiSlice(val partition: Map[String, String], slice: AnyRef, logFiles: HudiLogFiles) {
  private val logFileNames = HudiLogFiles.logFiles(slice).map(HudiLogFiles.name)

  /** The base file; None where all rows are in log files. */
  def baseFile: Option[AnyRef] = HudiTable.baseFile(slice)

  /** The version of its rows, if it has log files and the same log files always give the same rows. */
  val version: Option[Long] = logFiles.version(slice)

  /** The names of its log files, if its rows have no version. */
  def unversionedLogFiles: Option[String] =
    Optional.when(logFileNames.nonEmpty && version.isEmpty)(logFileNames.sorted.mkString(","))
}

object HudiTable extends TableFormat {
  override val name: String = "hudi"

  private val IndexClass = "org.apache.hudi.HoodieFileIndex"
  private val TableClass = "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table"
  private val RelationsWithoutIndex =
    Set("org.apache.hudi.MergeOnReadSnapshotRelation", "org.apache.hudi.HoodieBootstrapMORRelation")
  private val AsOf = "as.of.instant"
  private val ById = "hoodie.schema.on.read.enable"
  private val InstantFormat = DateTimeFormatter.ofPattern("yyyyMMddHHmmssSSS")
  private val Dropped = "hoodie.datasource.write.drop.partition.columns"

  /** Whether Spark's table is a Hudi table: Hudi shows those that allow schema-on-read. */
  override def is(table: Table): Boolean = table.getClass.getName == TableClass

  /**
   * Whether a relation reads a Hudi table as of one instant; changes between instants are read by other
   * indexes.
   */
  def is(relation: HadoopFsRelation): Boolean = relation.location.getClass.getName == IndexClass

  override def open(relation: LogicalRelation): Option[LakeTable] = relation.relation match {
    case files: HadoopFsRelation => Optional.when(is(files))(HudiTable(files))
    case other =>
      requireIndex(other)
      EmptyHudiTable.open(other, relation.catalogTable, relation.schema)
  }

  // Readers look for names, or for ids.
  override def readsByKey(relation: HadoopFsRelation, path: Seq[String], key: String): Boolean =
    !is(relation) || leaves(relation).exists(leaf => leaf.path == path && leaf.key == key)

  override def withVersions(
      relation: HadoopFsRelation,
      versions: Map[Path, Long]): Option[HadoopFsRelation] =
    Optional.when(is(relation)) {
      val listed = new HudiLogFiles(relation).listFiles(versions)
      relation.copy(
        location = new ListedFileIndex(relation.location, listed),
        options = relation.options ++ AllFiles)(relation.sparkSession)
    }

  /** Options against settings of the session by which a scan leaves out files that it cannot read. */
  private val AllFiles = Map("ignoreCorruptFiles" -> "false", "ignoreMissingFiles" -> "false")

  override def isProvider: Boolean = true
  override def needsReader: Boolean = true
  override def isNotFound(e: Exception): Boolean =
    e.getClass.getName == "org.apache.hudi.exception.TableNotFoundException"
  override val rules: Seq[String] = Seq("org.apache.spark.sql.hudi.")
  override val sink: Option[String] = Some("HoodieStreamingSink")
  override def isCommand(node: LogicalPlan): Boolean = node.getClass.getName.startsWith(CommandPackage)

  private val CommandPackage = "org.apache.spark.sql.hudi.command."
  private val writes = Set(
    "InsertIntoHoodieTableCommand",
    "MergeIntoHoodieTableCommand",
    "UpdateHoodieTableCommand",
    "DeleteHoodieTableCommand",
    "CreateHoodieTableAsSelectCommand")

  override def isWrite(command: LogicalPlan): Boolean =
    isCommand(command) && writes(command.getClass.getSimpleName)

  private val procedures = Set(
    s"${CommandPackage}procedures.RunClusteringProcedure",
    s"${CommandPackage}procedures.RunCompactionProcedure")

  override def writtenBy(call: LogicalPlan): Option[(TableCatalog, Identifier)] =
    if (call.getClass.getName != s"${CommandPackage}CallProcedureHoodieCommand") None
    else for {
      procedure <- Some(Reflection.value[AnyRef](call, "procedure")) if procedures(procedure.getClass.getName)
      parameters = Reflection.call[Array[AnyRef]](procedure, "parameters")
      named <- parameters.find(Reflection.call[String](_, "name") == "table")
      table <- Reflection.call[Option[AnyRef]](
        procedure,
        "getArgValueOrDefault",
        Reflection.value[AnyRef](call, "args"),
        named)
      identifier <- inSessionCatalog(table.toString)
    } yield identifier

  private def inSessionCatalog(table: String): Option[(TableCatalog, Identifier)] = {
    val session = SparkSession.active
    val state = session.sessionState
    val name = state.sqlParser.parseTableIdentifier(table)
    val namespace = Array(name.database.getOrElse(state.catalog.getCurrentDatabase))
    Catalogs(session).catalog(Catalogs.SessionCatalog) match {
      case tables: TableCatalog => Some((tables, Identifier.of(namespace, name.table)))
      case _ => None
    }
  }

  /** @throws UnsupportedRelease this release of Hudi is not known */
  def apply(relation: HadoopFsRelation): HudiTable = {
    FormatReleases.require(relation.location)
    new HudiTable(relation)
  }

  /**
   * Passes a relation that does not read a Hudi table by relations of its own kind, which show no file index.
   */
  private def requireIndex(relation: AnyRef): Unit =
    if (RelationsWithoutIndex(relation.getClass.getName)) {
      val present = FormatReleases.version(relation).getOrElse("an older one")
      throw new UnsupportedRelease(Reason(
        ReasonCode.NeedsRelease,
        "needed" -> "Hudi 1.0 for a merge-on-read table",
        "found" -> present))
    }

  /** The root of the table with the scheme of its file system. */
  def root(relation: HadoopFsRelation): Path =
    LakeTable.qualify(path(Reflection.call[AnyRef](relation.location, "getBasePath")), relation.sparkSession)

  /** The leaves of a relation's schema; by their names where nothing can be said of them. */
  def leaves(relation: HadoopFsRelation): IndexedSeq[Leaf] = HudiColumns.readOrByName(relation).leaves

  /** Why nothing can be said of a table's columns, or of its files. */
  def refusal(relation: HadoopFsRelation): Option[String] = {
    val metaClient = Reflection.call[AnyRef](relation.location, "metaClient")
    val config = Reflection.call[AnyRef](metaClient, "getTableConfig")
    val properties = Reflection.call[java.util.Map[String, String]](config, "propsMap")
    val fileFormat = properties.getOrDefault("hoodie.table.base.file.format", "parquet")
    if (properties.getOrDefault("hoodie.bootstrap.base.path", "").nonEmpty)
      Some("it was bootstrapped: rows of a file lie in two places")
    else if (!fileFormat.equalsIgnoreCase("parquet"))
      Some(s"its files are not Parquet but $fileFormat")
    else if (properties.getOrDefault("hoodie.table.create.schema", "").contains("timestamp-millis"))
      Some("it has timestamps in milliseconds, which files of older releases call microseconds")
    else HudiColumns.read(relation).left.toOption
  }

  /** Names of the columns that partition the table. */
  def partitionColumns(index: FileIndex): Seq[String] =
    Reflection.call[Array[String]](index, "getPartitionColumns").toSeq

  /** The base file of a slice. */
  private[spark] def baseFile(slice: AnyRef): Option[AnyRef] =
    Reflection.option[AnyRef](Reflection.call[AnyRef](slice, "getBaseFile"))

  /** The slices that a relation reads. */
  private def slices(relation: HadoopFsRelation): Seq[HudiSlice] = {
    val index = relation.location
    val logFiles = new HudiLogFiles(relation)
    val partitionFields = Indexed.by(index.partitionSchema.fields)(_.name)
    val fields =
      for (name <- partitionColumns(index))
        yield partitionFields.getOrElse(name, StructField(name, StringType))
    val all = Reflection.call[java.util.Map[AnyRef, java.util.List[AnyRef]]](index, "getAllInputFileSlices")
    for {
      (partition, slices) <- all.asScala.toSeq
      values = Reflection.value[Array[AnyRef]](partition, "getValues", "values")
      texts = LakeTable.partitionTexts(fields.zip(values))
      slice <- slices.asScala
    } yield new HudiSlice(texts, slice, logFiles)
  }

  private[spark] type SliceLists = java.util.Map[AnyRef, java.util.List[AnyRef]]

  /** The slices that an index has listed: another object whenever it is refreshed. */
  private[spark] def slicesInMemory(index: FileIndex): Option[SliceLists] =
    Try(Option(Reflection.value[SliceLists](index, "cachedAllInputFileSlices"))).getOrElse(None)

  /** The number of slices that an index reads; `None` where it has not listed them all. */
  private[spark] def filesInMemory(index: FileIndex): Option[Long] = {
    def isListed = Reflection.call[Boolean](index, "areAllFileSlicesCached")
    def countIn(slices: SliceLists) = slices.values.stream.mapToLong(_.size.toLong).sum
    Try(if (isListed) slicesInMemory(index).map(countIn) else None).getOrElse(None)
  }

  private def path(storagePath: AnyRef): Path = new Path(storagePath.toString)
}

/** A Hudi table without any instant: Hudi shows a relation without a file index for it. */
final class EmptyHudiTable private (root: Path, schema: StructType) extends LakeTable {
  override val format: String = HudiTable.name
  override val uuid: String = LakeTable.uuidOf(root)
  override val location: String = root.toString
  override val current: Option[String] = None
  override def lineage(snapshot: String): Iterator[String] = Iterator.single(snapshot)
  override def snapshot(text: String): Option[String] = None
  override def snapshotAt(micros: Long): Option[String] = None
  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] = Leaf.byNames(schema)
  override def dataFiles(snapshot: String): Seq[DataFile] = Nil
  override def facts: SnapshotFacts = SnapshotFacts(None, Nil)
}

object EmptyHudiTable {
  private val RelationClass = "org.apache.hudi.EmptyRelation"

  /** The table of a relation that is Hudi's empty one. */
  def open(relation: AnyRef, entry: Option[CatalogTable], schema: StructType): Option[LakeTable] =
    for (table <- entry if relation.getClass.getName == RelationClass) yield {
      val root = LakeTable.qualify(new Path(table.location), SparkSession.active)
      new EmptyHudiTable(root, schema)
    }
}
