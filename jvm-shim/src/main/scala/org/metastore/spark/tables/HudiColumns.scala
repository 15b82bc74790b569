package org.metastore.spark.tables

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.cache.StatisticsCache

/** The columns that a relation shows, and how the data files of its table call them. */
private[spark] final class HudiColumns private (schema: StructType, history: Option[SchemaHistory]) {

  /** Readers look for columns by their names, or, where the table's schema was changed by schema-on-read, by their ids. */
  lazy val leaves: IndexedSeq[Leaf] =
    for ((names, path, field) <- Leaf.walk(schema, _.name)) yield {
      val key = history.fold[Seq[String]](names)(_.key(path, field.dataType))
      Leaf.fromField(key, path, field)
    }

  /** Whether readers look for ids. */
  def areById: Boolean = history.isDefined

  /** Keys of the columns whose name tells not of every file what it holds. */
  lazy val renamed: Set[String] =
    if (!areById) Set.empty
    else Indexed.set(leaves.filter(leaf => leaf.key != Leaf.key(leaf.path)))(_.key)

  /** What the base file that an instant wrote calls those columns, as far as that is certain; none where it is null. */
  def heldIn(instant: String): Map[String, Option[String]] = {
    val names = for {
      when <- Try(instant.toLong).toOption.toSeq
      schemas <- history.toSeq
      leaf <- leaves if leaf.path.length == 1 && renamed(leaf.key)
      name <- schemas.held(leaf.path.head, when)
    } yield leaf.key -> name
    names.toMap
  }
}

private[spark] object HudiColumns {

  /** Those of a relation, or why nothing can be said of them. */
  def read(relation: HadoopFsRelation): Either[String, HudiColumns] = {
    def byName = new HudiColumns(relation.schema, None)
    val metaClient = Reflection.call[AnyRef](relation.location, "metaClient")
    querySchema(relation) match {
      case Some(None) => Right(byName)
      case Some(Some(schema)) if !isOld(relation) =>
        val commits = Reflection.value[String](relation.fileFormat, "validCommits").split(',')
        val valid = Indexed.set(commits)(_.takeWhile(_.isDigit))
        Right(new HudiColumns(relation.schema, Some(SchemaHistory(relation, schema, metaClient, valid))))
      case _ => if (SchemaFiles.find(relation, metaClient).isEmpty) Right(byName) else Left(Unknown)
    }
  }

  private val Unknown =
    "its schema was changed by schema-on-read: files call columns by names that now may mean others"

  /** The schema with ids by which a relation reads; None inside where it reads by names, None where this is not known. */
  private def querySchema(relation: HadoopFsRelation): Option[Option[AnyRef]] = Try {
    val told = Reflection.value[AnyRef](relation.fileFormat, "tableSchema")
    Reflection.option[AnyRef](Reflection.call[AnyRef](told, "internalSchema"))
  }.toOption

  private val Oldest = "1.2"

  private def isOld(relation: HadoopFsRelation): Boolean = {
    val version = FormatReleases.ofClass(relation.location.getClass).flatMap(_.version)
    version.forall(FormatReleases.isBefore(_, Oldest))
  }
}

/** A column at the root of a schema. */
private final case class RootColumn(id: Int, name: String, kind: JsonNode, isOptional: Boolean)

/** A schema that was valid from an instant on. */
private final case class SchemaVersion(since: Long, columns: Seq[RootColumn])

/**
 * The schemas of a table that schema-on-read has changed.
 *
 * What a column's statistics say of a file depends on the file and on the column's key alone, whenever the file was analyzed: a
 * key is a name that every schema has given to this column and to no other, or it lists since when the column has had which name.
 *
 * @param query   the schema by which a relation reads
 * @param known   all that lie in the table
 * @param history those in which readers look up a file's, oldest first
 */
private final class SchemaHistory(
    query: AnyRef,
    metaClient: AnyRef,
    known: Seq[SchemaVersion],
    history: Seq[SchemaVersion]) {
  import SchemaHistory.Marker

  /** The names that make a column's key. */
  def key(path: Seq[String], dataType: DataType): Seq[String] = {
    val id = idOf(path.head)
    val isPlain = path.length == 1 && !SchemaHistory.isNested(dataType)
    val all = known.flatMap(_.columns)
    val same = all.filter(column => column.id == id || column.name.equalsIgnoreCase(path.head))
    val hasOneName = same.nonEmpty && same.forall(column => column.id == id && column.name == path.head)
    if (hasOneName && (isPlain || same.map(_.kind).distinct.size == 1)) path
    else names(id) match {
      case Some(changes) if isPlain => Marker +: (for ((since, name) <- changes) yield s"$since=$name")
      case _ => Marker +: path
    }
  }

  /** What the base file that an instant wrote calls a column; none inside where it is null in it, none where this is not certain. */
  def held(column: String, when: Long): Option[Option[String]] = {
    val id = idOf(column)
    for {
      had <- names(id)
      schema <- readers.getOrElseUpdate(when, Try(SchemaHistory.readers(metaClient, when)).toOption)
      nameThen = had.takeWhile(_._1 <= when).lastOption.map(_._2)
      held <- held(id, had, nameThen, schema)
    } yield held
  }

  // Readers ask the commit of a file first, as long as it is not archived, and a commit may have begun before a change.
  private def held(
      id: Int,
      had: Seq[(Long, String)],
      name: Option[String],
      schema: AnyRef): Option[Option[String]] = {
    def field(by: AnyRef) =
      Option(Reflection.call[AnyRef](schema, "findField", by)).map(Reflection.call[String](_, "name"))
    // Where a file has another column of the name, readers look for a name that no column has.
    def isOthers = had.forall { case (_, name) => field(name).isDefined && field(name + "suffix").isEmpty }
    field(Int.box(id)) match {
      case found: Some[_] => if (found == name) Some(name) else None
      case None =>
        def isOptional = known.flatMap(_.columns).forall(column => column.id != id || column.isOptional)
        if (name.isEmpty && isOthers && isOptional) Some(None) else None
    }
  }

  private def idOf(name: String): Int = Reflection.call[Int](query, "findIdByName", name)

  /** Since when a column has had which name; empty where it had none. */
  private def names(id: Int): Option[Seq[(Long, String)]] = {
    val changes = Seq.newBuilder[(Long, String)]
    var last = ""
    for (version <- history) {
      val name = version.columns.find(_.id == id).fold("")(_.name)
      if (name != last) changes += version.since -> name
      last = name
    }
    if (changes.result().isEmpty) None else Some(changes.result())
  }

  private val readers = mutable.HashMap.empty[Long, Option[AnyRef]]
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
    val read =
      files.map(file => SchemaFiles.instant(file) -> SchemaFiles.read(file, relation.sparkSession))
    val certain = for ((instant, versions) <- read if valid(instant)) yield instant -> versions
    val newest = if (certain.isEmpty) Nil else certain.sortBy(_._1).last._2
    new SchemaHistory(query, metaClient, read.flatMap(_._2), newest.sortBy(_.since))
  }

  private def isNested(dataType: DataType): Boolean = dataType match {
    case _: StructType | _: ArrayType | _: MapType => true
    case _ => false
  }

  private val ReadersClass = "org.apache.hudi.common.util.InternalSchemaCache"

  /** The schema with which Hudi's readers read the base file that an instant wrote. */
  private def readers(metaClient: AnyRef, when: Long): AnyRef =
    Reflection.callStatic[AnyRef](
      Reflection.load(ReadersClass, metaClient.getClass.getClassLoader),
      "getInternalSchemaByVersionId",
      Long.box(when),
      metaClient)
}

/** The files in which schema-on-read keeps the schemas that a table has had; each has those of the one before. */
private object SchemaFiles {
  private val Ending = ".schemacommit"
  private val BytesOfName = 200L
  private val mapper = new ObjectMapper

  /** Those that a relation may know of. */
  def find(relation: HadoopFsRelation, metaClient: AnyRef): Seq[Path] = {
    val folder = Reflection.call[String](metaClient, "getSchemaFolderName")
    def latest = Reflection.option[AnyRef](Reflection.call[AnyRef](
      relation.location,
      "getLatestCompletedInstant")).map(_.toString)
    // A query of an older instant may see names that were given later.
    val newest = Try(if (HudiMembers.asOf(relation.location).isEmpty) latest else None).toOption.flatten
    def files = HudiMembers.list(new Path(folder), relation.sparkSession).filter(_.getName.endsWith(Ending))
    newest match {
      case None => files
      case Some(instant) => // a change makes another instant
        StatisticsCache.getOrLoad[Seq[Path]](
          s"schemas:$folder:$instant",
          found => BytesOfName * (found.length + 1))(files)
    }
  }

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
