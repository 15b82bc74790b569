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
    else path.map(Leaf.quoteIfNeeded).mkString(".")
}

/** A leaf of a schema: its physical names from the root, its names from the root, and the field. */
final case class LeafField(names: Vector[String], path: Vector[String], field: StructField) {

  /** The leaf whose key is its physical names. */
  def toLeaf: Leaf = Leaf.fromField(names, path, field)
}

object Leaf {
  private val mapper = new ObjectMapper

  private def quoteIfNeeded(part: String): String =
    if (part.isEmpty || part.contains('.') || part.contains('`')) s"`${part.replace("`", "``")}`" else part

  /** A key that is made of names. */
  def key(names: Seq[String]): String = mapper.writeValueAsString(names.toArray)

  /** The leaf of a field that `walk` finds. */
  def fromField(key: Seq[String], path: Seq[String], field: StructField): Leaf =
    Leaf(
      Leaf.key(key),
      path,
      field.dataType,
      CharVarcharUtils.getRawType(field.metadata).collect { case char: CharType => char.length })

  /** The leaves of a schema whose physical names are its names. */
  def byNames(schema: StructType): Vector[Leaf] = walk(schema, _.name).map(_.toLeaf)

  /** The leaves of a schema, in order. */
  def walk(struct: StructType, physical: StructField => String): Vector[LeafField] =
    struct.fields.toVector.flatMap { field =>
      field.dataType match {
        case inner: StructType =>
          for (leaf <- walk(withCharMarks(inner, field), physical))
            yield LeafField(physical(field) +: leaf.names, field.name +: leaf.path, leaf.field)
        case _ => Vector(LeafField(Vector(physical(field)), Vector(field.name), field))
      }
    }

  /** The fields of a struct, each with its mark of CHAR: Spark has these marks at the struct. */
  private def withCharMarks(inner: StructType, field: StructField): StructType =
    CharVarcharUtils.getRawType(field.metadata) match {
      case Some(raw: StructType) if raw.length == inner.length =>
        val marked = CharVarcharUtils.replaceCharVarcharWithStringInSchema(raw)
        StructType(Array.tabulate(inner.length)(i => withCharMark(inner(i), marked(i))))
      case _ => inner
    }

  private def withCharMark(field: StructField, marked: StructField): StructField =
    if (!marked.metadata.contains(RawType)) field
    else {
      val mark = marked.metadata.getString(RawType)
      val metadata = new MetadataBuilder().withMetadata(field.metadata).putString(RawType, mark)
      field.copy(metadata = metadata.build())
    }

  private val RawType = "__CHAR_VARCHAR_TYPE_STRING"
}
