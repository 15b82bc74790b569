package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, Expression}

/** Replaces the columns of an expression with their definitions. */
private[scan] object ReplacedColumns {
  def apply(expression: Expression, definitions: AttributeMap[Expression]): Expression =
    expression.transform { case column: Attribute => definitions.getOrElse(column, column) }
}
