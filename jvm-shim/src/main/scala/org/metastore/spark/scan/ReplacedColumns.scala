package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, Expression}

/** Puts other expressions in the place of an expression's columns. */
private[scan] object ReplacedColumns {
  def apply(expression: Expression, definitions: AttributeMap[Expression]): Expression =
    expression.transform { case column: Attribute => definitions.getOrElse(column, column) }
}
