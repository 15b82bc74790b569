package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField}
import org.apache.spark.sql.types.{DataType, StructType}

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.columns.TypePromotion

/** Finds the column of the statistics that an attribute of the plan stands for. */
trait ColumnResolver {

  /**
   * @param root attribute of the scan's output
   * @param path names of the struct fields below it, empty for the attribute itself
   * @return the column's key; `None` if it is no column of the table, such as a metadata or computed column
   */
  def key(root: Attribute, path: Seq[String]): Option[String]

  /** The key of an attribute or a struct field; `None` for other expressions, and for columns of no table. */
  final def keyOf(expression: Expression): Option[String] = expression match {
    case ColumnLookup.ColumnPath(root, path) if !isMetadata(root) => key(root, path)
    case _ => None
  }

  /** An equal condition that reads columns in place of expressions; `None` if it has no such expression. */
  def replaceIn(condition: Expression): Option[Expression] = None

  /** The condition over columns: an equal one, or itself if it has no such expression. */
  final def overColumns(condition: Expression): Expression = replaceIn(condition).getOrElse(condition)

  /** Whether an attribute describes where a row is stored, such as its file's path. */
  def isMetadata(root: Attribute): Boolean = ColumnResolver.marks.exists(root.metadata.contains)
}

object ColumnResolver {

  /** Spark's marks of hidden columns, and of the metadata columns of its file sources. */
  private val marks = Seq("__metadata_col", "__file_source_metadata_col")
}

/** A column that a filter reads, with its type in the query. */
final case class ColumnReference(key: String, name: String, dataType: DataType)

/** Finds the columns of the statistics behind attributes and struct fields. */
private[pruning] final class ColumnLookup(resolver: ColumnResolver) {
  import ColumnLookup._

  /** The column that the expression reads, whatever its type. */
  def find(expression: Expression): Either[Reason, ColumnReference] = expression match {
    case ColumnPath(root, path) if resolver.isMetadata(root) =>
      Left(Reason(ReasonCode.MetadataColumn, "expression" -> expression.sql))
    case ColumnPath(root, path) =>
      val name = (root.name +: path).map(quoted).mkString(".")
      val column = resolver.key(root, path).map(ColumnReference(_, name, expression.dataType))
      column.toRight(Reason(ReasonCode.UnknownColumn, "column" -> name))
    case _ =>
      Left(Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql))
  }

  /** The column that the expression reads, if its bounds may be used. */
  def findBounded(expression: Expression): Option[ColumnReference] = expression match {
    case BoundedColumn() if TypePromotion.hasBounds(expression.dataType) => find(expression).toOption
    case _ => None
  }

  /** The reason why the bounds of a column of this type cannot be used; `None` if they can. */
  def noBoundsReason(expression: Expression): Option[Reason] = expression match {
    case ColumnPath(root, _) if isChar(root) =>
      Some(Reason(ReasonCode.CharPadding, "column" -> root.name))
    case ColumnPath(root, _) if TypePromotion.isCollated(expression.dataType) =>
      val collation = "collation" -> expression.dataType.typeName
      Some(Reason(ReasonCode.Collation, "column" -> root.name, collation))
    case _ => None
  }

  private def quoted(name: String): String = if (name.contains(".")) s"`$name`" else name
}

private[spark] object ColumnLookup {
  private val RawType = "__CHAR_VARCHAR_TYPE_STRING"
  private val Char = "(?i)(?<![a-z])char\\(".r

  /** A column or a field of structs, whose bounds may be used. */
  object BoundedColumn {
    def unapply(expression: Expression): Boolean =
      ColumnPath.unapply(expression).exists { case (root, _) => !isChar(root) }
  }

  /** An attribute and the names of the struct fields below it. */
  object ColumnPath {
    def unapply(expression: Expression): Option[(Attribute, Seq[String])] = expression match {
      case attribute: Attribute =>
        Some((attribute, Nil))
      case field: GetStructField =>
        val struct = field.child.dataType.asInstanceOf[StructType]
        for ((root, path) <- unapply(field.child)) yield (root, path :+ struct(field.ordinal).name)
      case _ => None
    }
  }

  /** The columns and fields that an expression reads, once for each time that it reads them. */
  def leavesOf(expression: Expression): Seq[Expression] = expression match {
    case ColumnPath(_, _) => Seq(expression)
    case other =>
      other.children.flatMap(leavesOf)
  }

  /** Whether a column is CHAR: Spark pads its values on reading, and statistics have the stored ones. */
  private def isChar(root: Attribute): Boolean =
    root.metadata.contains(RawType) && Char.findFirstIn(root.metadata.getString(RawType)).isDefined
}
