package org.metastore.spark.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.CharVarcharUtils

/** Recognizes projections that show all columns of the table below. */
private[spark] object FullProjection {

  /** Whether it shows every column, unchanged or padded as Spark pads CHAR when it reads. */
  def isFull(columns: Seq[NamedExpression], child: LogicalPlan): Boolean = {
    val attributes = columns.flatMap(readOf)
    attributes.length == columns.length && child.outputSet.subsetOf(AttributeSet(attributes))
  }

  private def readOf(column: NamedExpression): Option[Attribute] = column match {
    case plain: Attribute => Some(plain)
    // Any other expression over the column, even one with padding in it, may be somebody's mask.
    case padded @ Alias(expression, name) => expression.references.toSeq match {
        case Seq(attribute)
            if attribute.name == name && expression.semanticEquals(
              CharVarcharUtils.addPaddingForScan(attribute.withMetadata(padded.metadata))) =>
          Some(attribute)
        case _ => None
      }
    case _ => None
  }
}
