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

import org.metastore.spark.reason.{Indexed, Reason, ReasonCode}

/**
 * A Hudi table at the instant that its name stands for, by reflection on Hudi's own file index: whatever Hudi reads
 * (table versions, archived timelines, the metadata table) is read by Hudi. Its snapshots are instants.
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

  private lazy val columns = HudiColumns.read(relation).toOption

  override def dataFiles(snapshot: String): Seq[DataFile] = filesOf(slicesOf(snapshot)).map(_.live)

  override def refusal: Option[TableRefusal] = HudiTable.refusal(relation).map(TableRefusal(_))

  override def isKeptBySession: Boolean = true

  override def facts: SnapshotFacts = {
    val slices = current.toSeq.flatMap(slicesOf)
    SnapshotFacts(
      current,
      filesOf(slices),
      hasOtherRows = slices.exists { case (_, slice) => HudiTable.baseFile(slice).isEmpty })
  }

  private def slicesOf(snapshot: String): Seq[(Map[String, String], AnyRef)] =
    HudiTable.slices(at(snapshot).location)

  private def filesOf(slices: Seq[(Map[String, String], AnyRef)]): Seq[FileFacts] = {
    val files =
      for {
        (partition, slice) <- slices
        base <- HudiTable.baseFile(slice)
      } yield file(partition, slice, base)
    files.sortBy(_.live.path)
  }

  private def file(partition: Map[String, String], slice: AnyRef, base: AnyRef): FileFacts = {
    val path = new Path(call[String](base, "getPath"))
    val logFiles = call[java.util.stream.Stream[AnyRef]](slice, "getLogFiles").iterator.asScala.toList
    val logs = logFiles.map(call[String](_, "getFileName"))
    val deleted = if (logs.isEmpty) Some(0L) else None
    val live =
      DataFile(LakeTable.pathInTable(path, root), call[Long](base, "getFileSize"), None, deleted, partition)
    val below = new Path(root, path)
    val held = columns.fold(Map.empty[String, Option[String]])(_.heldIn(call[String](base, "getCommitTime")))
    val nulls = for ((key, None) <- held) yield key -> (null: String)
    val names = for ((key, Some(name)) <- held) yield key -> name
    val unknown = renamed.filterNot(held.contains)
    FileFacts(
      live,
      below.toString,
      if (logs.isEmpty) None else Some(logs.sorted.mkString(",")),
      constants = FileConstants(nulls, unknown),
      names = names)
  }

  private def renamed: Seq[String] = columns.toSeq.flatMap(_.renamed)

  override def properties: Map[String, String] =
    call[java.util.Map[String, String]](config, "propsMap").asScala.toMap

  /** Those whose values paths alone tell: of all others the data files hold them. */
  override def partitionColumns: Seq[String] =
    if (properties.get(HudiTable.Dropped).exists(_.equalsIgnoreCase("true")))
      HudiTable.partitionColumns(index)
    else Nil

  // A catalog lets every column be null; whoever reads the path has what writers declared.
  override lazy val requiredColumns: Set[String] = {
    def below(struct: StructType, above: Vector[String], nullable: Boolean): Seq[String] =
      struct.fields.toSeq.flatMap { field =>
        val (path, mayBeNull) = (above :+ field.name, nullable && field.nullable)
        field.dataType match {
          case inner: StructType => below(inner, path, mayBeNull)
          case _ => if (mayBeNull) Nil else Seq(Leaf.key(path))
        }
      }
    val schema = relation.sparkSession.read.format("hudi").load(location).schema
    (below(schema, Vector.empty, nullable = true) ++ renamed).toSet
  }

  private val known = mutable.HashMap.empty[String, HadoopFsRelation]

  private def at(snapshot: String): HadoopFsRelation =
    if (current.contains(snapshot)) relation
    else known.getOrElseUpdate(
      snapshot, {
        val byId = columns.exists(_.areById)
        val reader = relation.sparkSession.read.format("hudi").option(HudiTable.AsOf, snapshot)
        val read = reader.option(HudiTable.ById, byId).load(location)
        read.queryExecution.analyzed.collectFirst(HudiTable.relation).get
      })
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

  private val relation: PartialFunction[LogicalPlan, HadoopFsRelation] = {
    case logical: LogicalRelation if logical.relation.isInstanceOf[HadoopFsRelation] =>
      logical.relation.asInstanceOf[HadoopFsRelation]
  }

  /** Whether Spark's table is a Hudi table: Hudi shows those that allow schema-on-read. */
  override def is(table: Table): Boolean = table.getClass.getName == TableClass

  /** Whether a relation reads a Hudi table as of one instant; changes between instants are read by other indexes. */
  def is(relation: HadoopFsRelation): Boolean = relation.location.getClass.getName == IndexClass

  override def open(relation: LogicalRelation): Option[LakeTable] = relation.relation match {
    case files: HadoopFsRelation => if (is(files)) Some(HudiTable(files)) else None
    case other =>
      requireIndex(other)
      EmptyHudiTable.open(other, relation.catalogTable, relation.schema)
  }

  // Readers look for names, or for ids.
  override def readsByKey(relation: HadoopFsRelation, path: Seq[String], key: String): Boolean =
    !is(relation) || leaves(relation).exists(leaf => leaf.path == path && leaf.key == key)

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
      found <- inSessionCatalog(table.toString)
    } yield found

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

  /** Passes a relation that does not read a Hudi table by relations of its own kind, which show no file index. */
  private def requireIndex(relation: AnyRef): Unit =
    if (RelationsWithoutIndex(relation.getClass.getName)) {
      val found = FormatReleases.ofClass(relation.getClass).flatMap(_.version).getOrElse("an older one")
      throw new UnsupportedRelease(Reason(
        ReasonCode.NeedsRelease,
        "needed" -> "Hudi 1.0 for a merge-on-read table",
        "found" -> found))
    }

  /** The root of the table with the scheme of its file system. */
  def root(relation: HadoopFsRelation): Path =
    LakeTable.qualify(path(Reflection.call[AnyRef](relation.location, "getBasePath")), relation.sparkSession)

  /** The leaves of a relation's schema; by their names where nothing can be said of them. */
  def leaves(relation: HadoopFsRelation): IndexedSeq[Leaf] =
    HudiColumns.read(relation).fold(_ => leaves(relation.schema), _.leaves)

  private[tables] def leaves(schema: StructType): IndexedSeq[Leaf] =
    Leaf.walk(schema, _.name).map((Leaf.fromField _).tupled)

  /** Why nothing can be said of a table's columns, or of its files. */
  def refusal(relation: HadoopFsRelation): Option[String] = {
    val metaClient = Reflection.call[AnyRef](relation.location, "metaClient")
    val config = Reflection.call[AnyRef](metaClient, "getTableConfig")
    val properties = Reflection.call[java.util.Map[String, String]](config, "propsMap").asScala
    if (properties.get("hoodie.bootstrap.base.path").exists(_.nonEmpty))
      Some("it was bootstrapped: rows of a file lie in two places")
    else if (!properties.get("hoodie.table.base.file.format").forall(_.equalsIgnoreCase("parquet")))
      Some(s"its files are not Parquet but ${properties("hoodie.table.base.file.format")}")
    else if (properties.get("hoodie.table.create.schema").exists(_.contains("timestamp-millis")))
      Some("it has timestamps in milliseconds, which files of older releases call microseconds")
    else HudiColumns.read(relation).left.toOption
  }

  /** Names of the columns that partition the table. */
  def partitionColumns(index: FileIndex): Seq[String] =
    Reflection.call[Array[String]](index, "getPartitionColumns").toSeq

  /** The base file of a slice. */
  private[spark] def baseFile(slice: AnyRef): Option[AnyRef] =
    Reflection.option[AnyRef](Reflection.call[AnyRef](slice, "getBaseFile"))

  /** The slices that an index reads, each with the values of its partition as text. */
  private def slices(index: FileIndex): Seq[(Map[String, String], AnyRef)] = {
    val known = Indexed.by(index.partitionSchema.fields)(_.name)
    val fields =
      partitionColumns(index).map(name => known.getOrElse(name, StructField(name, StringType)))
    val all = Reflection.call[java.util.Map[AnyRef, java.util.List[AnyRef]]](index, "getAllInputFileSlices")
    for {
      (partition, slices) <- all.asScala.toSeq
      values = Reflection.value[Array[AnyRef]](partition, "getValues", "values")
      texts = LakeTable.partitionTexts(fields.zip(values))
      slice <- slices.asScala
    } yield texts -> slice
  }

  /** What an index holds of the slices that it has listed: another object whenever it is refreshed. */
  private[spark] def slicesInMemory(index: FileIndex): Option[AnyRef] =
    Try(Reflection.value[AnyRef](index, "cachedAllInputFileSlices")).toOption.filter(_ != null)

  /** How many slices an index reads; `None` where it has not listed them all. */
  private[spark] def filesInMemory(index: FileIndex): Option[Long] = Try {
    if (!Reflection.call[Boolean](index, "areAllFileSlicesCached")) None
    else slicesInMemory(index).map { slices =>
      val lists = slices.asInstanceOf[java.util.Map[_, java.util.List[_]]].values.asScala
      lists.iterator.map(_.size.toLong).sum
    }
  }.toOption.flatten

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
  override def leaves(snapshot: Option[String]): IndexedSeq[Leaf] = HudiTable.leaves(schema)
  override def dataFiles(snapshot: String): Seq[DataFile] = Nil
  override def facts: SnapshotFacts = SnapshotFacts(None, Nil)
}

object EmptyHudiTable {
  private val RelationClass = "org.apache.hudi.EmptyRelation"

  /** The table of a relation that is Hudi's empty one. */
  def open(relation: AnyRef, entry: Option[CatalogTable], schema: StructType): Option[LakeTable] =
    entry.filter(_ => relation.getClass.getName == RelationClass).map { table =>
      val root = LakeTable.qualify(new Path(table.location), SparkSession.active)
      new EmptyHudiTable(root, schema)
    }
}
