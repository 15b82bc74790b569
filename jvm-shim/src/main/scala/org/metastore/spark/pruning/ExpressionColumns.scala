package org.metastore.spark.pruning

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Optional

/**
 * Rewrites conditions on expressions with statistics: an attribute stands for each expression.
 *
 * @param names    the SQL of the expressions by their keys
 * @param conf     the settings of the session whose query is planned
 * @param resolver finds the columns that they read
 */
private[spark] final class ExpressionColumns(
    names: Map[String, String],
    conf: => SQLConf,
    resolver: ColumnResolver)
  extends ColumnResolver {
  private val columns = mutable.HashMap.empty[String, Attribute]
  private val keysOfColumns = mutable.HashMap.empty[ExprId, String]

  private lazy val keys = new ExpressionKeys(conf, resolver.keyOf)

  override def key(root: Attribute, path: Seq[String]): Option[String] =
    keysOfColumns.get(root.exprId) match {
      case None =>
        resolver.key(root, path)
      case own =>
        own.filter(_ => path.isEmpty)
    }

  override def isMetadata(root: Attribute): Boolean = resolver.isMetadata(root)

  override def replaceIn(condition: Expression): Option[Expression] =
    if (names.isEmpty) None
    else {
      val replaced = condition.transformDown {
        case StoredExpression(column) => column
      }
      Optional.when(!replaced.fastEquals(condition))(replaced)
    }

  private object StoredExpression {
    def unapply(expression: Expression): Option[Attribute] =
      if (expression.children.isEmpty) None
      else for (key <- keys.toKey(expression); name <- names.get(key))
        yield columnOf(key, name, expression.dataType)
  }

  private def columnOf(key: String, name: String, dataType: DataType): Attribute = columns.getOrElseUpdate(
    key, {
      val column = AttributeReference(name, dataType)()
      keysOfColumns(column.exprId) = key
      column
    })
}
