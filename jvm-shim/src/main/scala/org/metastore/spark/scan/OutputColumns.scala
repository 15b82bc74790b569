package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}

import org.metastore.spark.pruning.ColumnResolver

/** Finds columns by the relation's own names: a query may spell them in another case. */
private[scan] final class OutputColumns(output: Seq[AttributeReference], keyOf: Seq[String] => Option[String])
  extends ColumnResolver {
  override def key(root: Attribute, path: Seq[String]): Option[String] =
    for {
      column <- output.find(_.exprId == root.exprId)
      key <- keyOf(column.name +: path)
    } yield key
}
