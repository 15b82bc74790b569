package org.metastore.spark.pruning

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField}
import org.apache.spark.sql.types.{StringType, StructType}

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Finds the columns of the statistics behind attributes and struct fields, and remembers which were asked for. */
private[pruning] final class ColumnLookup(resolver: ColumnResolver) {
  import ColumnLookup._
  private val found = mutable.LinkedHashSet.empty[ColumnReference]

  /** The columns that were found so far. */
  def references: Seq[ColumnReference] = found.toSeq

  /** The column that the expression reads, whatever its type. */
  def find(expression: Expression): Either[Reason, ColumnReference] = expression match {
    case ColumnPath(root, path) if resolver.isMetadata(root) => Left(Reason(ReasonCode.MetadataColumn, "expression" -> expression.sql))
    case ColumnPath(root, path) =>
      val name = (root.name +: path).map(part => if (part.contains(".")) s"`$part`" else part).mkString(".")
      resolver.key(root, path).map { key =>
        val use = ColumnReference(key, name, expression.dataType)
        found += use
        use
      }.toRight(Reason(ReasonCode.UnknownColumn, "column" -> name))
    case _ => Left(Reason(ReasonCode.UnsupportedExpression, "expression" -> expression.sql))
  }

  /** Why the bounds of a column of this type cannot be used; `None` where they can. */
  def whyNoBounds(expression: Expression): Option[Reason] = expression match {
    case ColumnPath(root, _) if isChar(root) => Some(Reason(ReasonCode.CharPadding, "column" -> root.name))
    case ColumnPath(root, _) => expression.dataType match {
      case s: StringType if s != StringType => Some(Reason(ReasonCode.Collation, "column" -> root.name, "collation" -> s.typeName))
      case _ => None
    }
    case _ => None
  }
}

private[spark] object ColumnLookup {
  private val RawType = "__CHAR_VARCHAR_TYPE_STRING"
  private val Char = "(?i)(?<![a-z])char\\(".r

  /** A column or a field of structs, whose bounds may be used. */
  object BoundedColumn {
    def unapply(expression: Expression): Boolean = expression match {
      case ColumnPath(root, _) => !isChar(root)
      case _ => false
    }
  }

  /** An attribute and the names of the struct fields below it. */
  object ColumnPath {
    def unapply(expression: Expression): Option[(Attribute, Seq[String])] = expression match {
      case attribute: Attribute => Some((attribute, Nil))
      case field: GetStructField => unapply(field.child).map { case (root, path) =>
        (root, path :+ field.child.dataType.asInstanceOf[StructType](field.ordinal).name)
      }
      case _ => None
    }
  }

  /** Values of CHAR are padded when they are read, and statistics hold them as they are stored. */
  private def isChar(root: Attribute): Boolean =
    root.metadata.contains(RawType) && Char.findFirstIn(root.metadata.getString(RawType)).isDefined
}
