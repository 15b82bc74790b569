package org.metastore.spark.statistics.objects

import scala.collection.JavaConverters._
import scala.collection.mutable
import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, JsonNodeFactory}

import org.metastore.spark.reason.Optional

/**
 * A table's name mapping: the names of its columns in data files without field ids.
 *
 * @param text the JSON of the table property; `None` if the table has none, and readers go by position
 */
final class NameMapping(text: Option[String]) {
  import NameMapping._

  // None if the text is no mapping: then the table's readers cannot read such files either.
  private lazy val names: Option[Map[String, String]] = Try(namesOf(json.readTree(text.get))).toOption

  /**
   * Gives the table's key to the columns of files without field ids whose names in the mapping are unchanged.
   */
  def resolve(columns: IndexedSeq[ColumnEntry]): IndexedSeq[ColumnEntry] = columns.map { column =>
    fieldId(column.key) match {
      case Some(id) if mappedKey(id).contains(column.key) => column.copy(key = id)
      // The data files of an expression are not stored: a mapping may have changed any of them.
      case None if column.isExpression && text.isDefined => column.copy(key = s"@${column.key}")
      case _ => column
    }
  }

  private def mappedKey(id: String): Option[String] =
    if (text.isEmpty) Some(s"$id@")
    else names.map(namesById => s"$id@${namesById.getOrElse(id, Unmapped)}")
}

object NameMapping {

  /** The table property that holds a name mapping. */
  val Property = "schema.name-mapping.default"

  private val Unmapped = "[]"
  private val MappedKey = "(?s)(\\d+)@.*".r
  private val json = new ObjectMapper
  private val nodes = JsonNodeFactory.instance

  /** Whether the key of a column is one of data files without field ids. */
  private[objects] def hasMappedKey(column: ColumnEntry): Boolean = fieldId(column.key).isDefined

  /** The field id in a key of a column in data files without field ids; `None` of any other key. */
  def fieldId(key: String): Option[String] = key match {
    case MappedKey(id) => Some(id)
    case _ => None
  }

  /** Field id to the names on the way to the field, as JSON. */
  private def namesOf(fields: JsonNode): Map[String, String] = {
    val namesById = mutable.Map.empty[String, String]
    def walk(fields: JsonNode, above: Vector[JsonNode]): Unit = for (field <- fields.elements.asScala) {
      val path = above :+ sortedNames(field)
      if (field.hasNonNull("field-id"))
        namesById(field.get("field-id").asText) = json.writeValueAsString(arrayOf(path ++ below(field)))
      walk(field.path("fields"), path)
    }
    walk(fields, Vector.empty)
    namesById.toMap
  }

  /** The nested fields of a field: the values of a list or a map depend on them. */
  private def below(field: JsonNode): Option[JsonNode] = {
    val nested = field.path("fields").elements.asScala.map(describe).toVector
    Optional.when(nested.nonEmpty)(nodes.objectNode().set[JsonNode]("fields", arrayOf(nested)))
  }

  private def describe(field: JsonNode): JsonNode = {
    val id = if (field.hasNonNull("field-id")) field.get("field-id") else nodes.nullNode
    arrayOf(Vector(
      id,
      sortedNames(field),
      arrayOf(field.path("fields").elements.asScala.map(describe).toVector)))
  }

  private def sortedNames(field: JsonNode): ArrayNode =
    arrayOf(field.path("names").elements.asScala.map(_.asText).toVector.sorted.map(nodes.textNode))

  private def arrayOf(parts: Seq[JsonNode]): ArrayNode = nodes.arrayNode().addAll(parts.asJava)
}
