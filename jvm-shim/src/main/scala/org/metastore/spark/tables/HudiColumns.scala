package org.metastore.spark.tables

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.collection.JavaConverters._
import scala.util.{Success, Try}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.cache.StatisticsCache

/** The columns that a relation shows, and the names that the data files of its table have for them. */
private[spark] final class HudiColumns private (schema: StructType, history: Option[SchemaHistory]) {

  /** The leaves of the schema. Their keys are names; after a change by schema-on-read, names for ids. */
  lazy val leaves: IndexedSeq[Leaf] =
    for (leaf <- Leaf.walk(schema, _.name)) yield {
      val key = history.fold[Seq[String]](leaf.names)(_.key(leaf.path, leaf.field.dataType))
      Leaf.fromField(key, leaf.path, leaf.field)
    }

  /** Whether readers look for ids. */
  def areById: Boolean = history.isDefined

  /** Keys of the columns that have other names in some data files. */
  lazy val renamed: Set[String] =
    if (!areById) Set.empty
    else Indexed.set(leaves.filter(leaf => leaf.key != Leaf.key(leaf.path)))(_.key)

  /** The renamed columns in the base file that an instant wrote. */
  def inFile(instant: String): ColumnsInFile = {
    val nulls = Map.newBuilder[String, String]
    val names = Map.newBuilder[String, String]
    val unknown = Seq.newBuilder[String]
    for (leaf <- leaves if renamed(leaf.key)) nameOf(leaf, instant) match {
      case NameInFile.Stored(name) => names += leaf.key -> name
      case NameInFile.Missing => nulls += leaf.key -> null
      case NameInFile.Uncertain => unknown += leaf.key
    }
    ColumnsInFile(names.result(), FileConstants(nulls.result(), unknown.result()))
  }

  private def nameOf(leaf: Leaf, instant: String): NameInFile = (history, Try(instant.toLong)) match {
    case (Some(schemas), Success(when)) if leaf.path.length == 1 => schemas.nameInFile(leaf.path.head, when)
    case _ => NameInFile.Uncertain
  }
}

/** Names of columns in a data file by key, and the constants of the columns that the file lacks. */
private[spark] final case class ColumnsInFile(names: Map[String, String], constants: FileConstants)

/** The name of a column in a data file. */
private sealed trait NameInFile

private object NameInFile {
  final case class Stored(name: String) extends NameInFile

  /** The column is null in all rows of the file. */
  case object Missing extends NameInFile

  /** Readers of the file may find the column, another column, or nothing. */
  case object Uncertain extends NameInFile
}

private[spark] object HudiColumns {

  /** The columns of a relation, or why their names in data files are unknown. */
  def read(relation: HadoopFsRelation): Either[String, HudiColumns] = {
    val metaClient = Reflection.call[AnyRef](relation.location, "metaClient")
    querySchema(relation) match {
      case Success(None) => Right(byName(relation))
      case Success(Some(schema)) if !isOld(relation) =>
        val commits = Reflection.value[String](relation.fileFormat, "validCommits").split(',')
        val valid = Indexed.set(commits)(_.takeWhile(_.isDigit))
        Right(new HudiColumns(relation.schema, Some(SchemaHistory(relation, schema, metaClient, valid))))
      case _ => if (SchemaFiles.find(relation, metaClient).isEmpty) Right(byName(relation)) else Left(Unknown)
    }
  }

  /** The columns of a relation; by their names where `read` refuses. */
  def readOrByName(relation: HadoopFsRelation): HudiColumns = read(relation).getOrElse(byName(relation))

  private def byName(relation: HadoopFsRelation) = new HudiColumns(relation.schema, None)

  private val Unknown =
    "its schema was changed by schema-on-read: files call columns by names that now may mean others"

  /** The schema with ids by which a relation reads; None where it reads by names. */
  private def querySchema(relation: HadoopFsRelation): Try[Option[AnyRef]] = Try {
    val schema = Reflection.value[AnyRef](relation.fileFormat, "tableSchema")
    Reflection.option[AnyRef](Reflection.call[AnyRef](schema, "internalSchema"))
  }

  private val Oldest = "1.2"

  private def isOld(relation: HadoopFsRelation): Boolean =
    FormatReleases.version(relation.location).forall(FormatReleases.isBefore(_, Oldest))
}

/** A column at the root of a schema. */
private final case class RootColumn(id: Int, name: String, kind: JsonNode, isOptional: Boolean)

/** A schema that was valid from an instant on. */
private final case class SchemaVersion(since: Long, columns: Seq[RootColumn]) {

  /** The name of a column; empty where the schema has no such column. */
  def nameOf(id: Int): String = columns.find(_.id == id).fold("")(_.name)
}

/** The name of a column from an instant on; empty where it has none. */
private final case class NameChange(since: Long, name: String)

/**
 * The schemas of a table that schema-on-read has changed.
 *
 * A key must mean the same column for ever: statistics of a file are found by the key, whenever the file was
 * analyzed. A column has a key of one of three forms:
 *
 *  - `a`: every schema calls this column `a`, and no other column; a nested column has one type in all of
 *    them;
 *  - `"", "100=a", "200=b"`: the column was called `a` from instant 100 on, and `b` from instant 200 on;
 *  - `"", "s", "x"`: the path of a column, if it is nested and was changed, or if its names are unknown.
 *
 * @param query    the schema by which a relation reads
 * @param versions all schemas of the table
 * @param history  the schemas among which readers look for that of a file, oldest first
 */
private final class SchemaHistory(
    query: AnyRef,
    metaClient: AnyRef,
    versions: Seq[SchemaVersion],
    history: Seq[SchemaVersion]) {
  import SchemaHistory.Marker

  /** The names that make a column's key. */
  def key(path: Seq[String], dataType: DataType): Seq[String] = {
    val id = idOf(path.head)
    val isPlain = path.length == 1 && !SchemaHistory.isNested(dataType)
    val same = columns.filter(column => column.id == id || column.name.equalsIgnoreCase(path.head))
    val hasOneName = same.nonEmpty && same.forall(column => column.id == id && column.name == path.head)
    val changes = changesOf(id)
    if (hasOneName && (isPlain || same.map(_.kind).distinct.size == 1)) path
    else if (isPlain && changes.nonEmpty)
      Marker +: changes.map(change => s"${change.since}=${change.name}")
    else Marker +: path
  }

  private lazy val columns: Seq[RootColumn] = versions.flatMap(_.columns)

  /** The name of a column in the base file that an instant wrote. */
  def nameInFile(column: String, instant: Long): NameInFile = {
    val id = idOf(column)
    val changes = changesOf(id)
    def schema = readerSchemas.getOrElseUpdate(instant, Try(SchemaHistory.readerSchema(metaClient, instant)))
    if (changes.isEmpty || schema.isFailure) NameInFile.Uncertain
    else nameInFile(id, changes, instant, schema.get)
  }

  /**
   * The column's name by the schema in the file's commit, if the history says the same. Readers take the
   * schema from the commit until it is archived, and from the history afterwards. The two differ if the
   * commit began before a change of the schema.
   */
  private def nameInFile(id: Int, changes: Seq[NameChange], instant: Long, schema: AnyRef): NameInFile = {
    val earlier = changes.takeWhile(_.since <= instant)
    val isYounger = earlier.isEmpty
    def isOptional = columns.forall(column => column.id != id || column.isOptional)
    findField(schema, Int.box(id)) match {
      case Some(field) if !isYounger && Reflection.call[String](field, "name") == earlier.last.name =>
        NameInFile.Stored(earlier.last.name)
      case None if isYounger && isOptional && changes.forall(change => readsNulls(schema, change.name)) =>
        NameInFile.Missing
      case _ => NameInFile.Uncertain
    }
  }

  /**
   * Whether readers show nulls for a column that a file lacks, because another column of the file has its
   * name. Hudi's `InternalSchemaMerger.buildRecordType` then looks for the name with `suffix` added.
   */
  private def readsNulls(schema: AnyRef, name: String): Boolean =
    findField(schema, name).isDefined && findField(schema, name + "suffix").isEmpty

  private def findField(schema: AnyRef, idOrName: AnyRef): Option[AnyRef] =
    Option(Reflection.call[AnyRef](schema, "findField", idOrName))

  private def idOf(name: String): Int = Reflection.call[Int](query, "findIdByName", name)

  /** The names that a column has had, oldest first. */
  private def changesOf(id: Int): Seq[NameChange] = {
    val changes = Seq.newBuilder[NameChange]
    var last = ""
    for (version <- history) {
      val name = version.nameOf(id)
      if (name != last) changes += NameChange(version.since, name)
      last = name
    }
    changes.result()
  }

  private val readerSchemas = mutable.HashMap.empty[Long, Try[AnyRef]]
}

private object SchemaHistory {

  /** The beginning of keys that are no names: Avro has no empty ones. */
  private val Marker = ""

  def apply(
      relation: HadoopFsRelation,
      query: AnyRef,
      metaClient: AnyRef,
      valid: Set[String]): SchemaHistory = {
    val files = SchemaFiles.find(relation, metaClient)
    val versions = Indexed.entries(files)(file => file -> SchemaFiles.read(file, relation.sparkSession))
    val certain = files.filter(file => valid(SchemaFiles.instant(file)))
    val newest = if (certain.isEmpty) Nil else versions(certain.sortBy(SchemaFiles.instant).last)
    new SchemaHistory(query, metaClient, files.flatMap(versions), newest.sortBy(_.since))
  }

  private def isNested(dataType: DataType): Boolean = dataType match {
    case _: StructType | _: ArrayType | _: MapType => true
    case _ => false
  }

  private val ReadersClass = "org.apache.hudi.common.util.InternalSchemaCache"

  /** The schema with which Hudi's readers read the base file that an instant wrote. */
  private def readerSchema(metaClient: AnyRef, instant: Long): AnyRef =
    Reflection.callStatic[AnyRef](
      Reflection.load(ReadersClass, metaClient.getClass.getClassLoader),
      "getInternalSchemaByVersionId",
      Long.box(instant),
      metaClient)
}

/** The files in which schema-on-read stores the schemas of a table; each file repeats the earlier schemas. */
private object SchemaFiles {
  private val Ending = ".schemacommit"
  private val BytesOfName = 200L
  private val mapper = new ObjectMapper

  /** The files of a relation's table. */
  def find(relation: HadoopFsRelation, metaClient: AnyRef): Seq[Path] = {
    val folder = Reflection.call[String](metaClient, "getSchemaFolderName")
    def files = HudiMembers.list(new Path(folder), relation.sparkSession).filter(_.getName.endsWith(Ending))
    Try(newestInstant(relation.location)) match {
      case Success(Some(instant)) => // a change makes another instant
        StatisticsCache.getOrLoad[Seq[Path]](
          s"schemas:$folder:$instant",
          paths => BytesOfName * (paths.length + 1))(files)
      case _ => files
    }
  }

  /** The newest instant, if the query reads it: a query of an older one may see later names. */
  private def newestInstant(index: FileIndex): Option[AnyRef] =
    if (HudiMembers.asOf(index).isDefined) None
    else Reflection.option[AnyRef](Reflection.call[AnyRef](index, "getLatestCompletedInstant"))

  /** The instant of the change, in the names of Hudi's newer timelines before that of its completion. */
  def instant(file: Path): String = file.getName.takeWhile(_.isDigit)

  /** All schemas in a file, which never changes. */
  def read(file: Path, session: SparkSession): Seq[SchemaVersion] = {
    val key = s"schemas:$file"
    StatisticsCache.getOrLoad[VersionsInFile](key, _.weight) {
      val stream = file.getFileSystem(session.sessionState.newHadoopConf()).open(file)
      val text =
        try new String(stream.readAllBytes, UTF_8)
        finally stream.close()
      val versions = mapper.readTree(text).get("schemas").asScala.map(version).toList
      VersionsInFile(versions, 4L * text.length)
    }.versions
  }

  private final case class VersionsInFile(versions: Seq[SchemaVersion], weight: Long)

  private def version(schema: JsonNode): SchemaVersion = {
    val columns = schema.get("fields").asScala.toList.map { field =>
      RootColumn(
        field.get("id").asInt,
        field.get("name").asText,
        field.get("type"),
        field.get("optional").asBoolean)
    }
    SchemaVersion(schema.get("version_id").asLong, columns)
  }
}
