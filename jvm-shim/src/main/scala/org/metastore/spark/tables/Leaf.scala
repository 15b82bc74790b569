package org.metastore.spark.tables

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.types.{CharType, DataType, MetadataBuilder, StructField, StructType}

import org.metastore.spark.statistics.objects.ColumnEntry

/** A leaf of a table's schema. */
final case class Leaf(key: String, path: Seq[String], dataType: DataType, charLength: Option[Int] = None) {

  /** The dotted name; parts that hold a dot or a back-quote are back-quoted. Of an expression its SQL. */
  def name: String =
    if (key.startsWith(ColumnEntry.ExpressionPrefix)) path.head
    else path.map { part =>
      if (part.isEmpty || part.contains('.') || part.contains('`')) s"`${part.replace("`", "``")}`"
      else part
    }.mkString(".")
}

object Leaf {
  private val mapper = new ObjectMapper

  /** A key that is made of names. */
  def key(names: Seq[String]): String = mapper.writeValueAsString(names.toArray)

  /** The leaf that `below` found. */
  def fromField(key: Seq[String], path: Seq[String], field: StructField): Leaf =
    Leaf(
      Leaf.key(key),
      path,
      field.dataType,
      CharVarcharUtils.getRawType(field.metadata).collect { case char: CharType => char.length })

  /** The leaves of a schema, in order: physical names from the root, names from the root, and the field. */
  def walk(
      struct: StructType,
      physical: StructField => String): Vector[(Vector[String], Vector[String], StructField)] =
    struct.fields.toVector.flatMap { field =>
      field.dataType match {
        case inner: StructType =>
          for ((key, path, leaf) <- walk(withCharMarks(inner, field), physical))
            yield (physical(field) +: key, field.name +: path, leaf)
        case _ => Vector((Vector(physical(field)), Vector(field.name), field))
      }
    }

  /** The fields of a struct with Spark's marks of CHAR, which stand at the struct. */
  private def withCharMarks(inner: StructType, field: StructField): StructType =
    CharVarcharUtils.getRawType(field.metadata) match {
      case Some(raw: StructType) if raw.length == inner.length =>
        val told = CharVarcharUtils.replaceCharVarcharWithStringInSchema(raw)
        StructType(for ((one, same) <- inner.fields.zip(told.fields)) yield withCharMark(one, same))
      case _ => inner
    }

  private def withCharMark(field: StructField, told: StructField): StructField =
    if (!told.metadata.contains(RawType)) field
    else {
      val mark = told.metadata.getString(RawType)
      val metadata = new MetadataBuilder().withMetadata(field.metadata).putString(RawType, mark)
      field.copy(metadata = metadata.build())
    }

  private val RawType = "__CHAR_VARCHAR_TYPE_STRING"
}
