package org.metastore.spark.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.CharVarcharUtils

/** Recognizes projections that show all columns of the table below. */
private[spark] object FullProjection {

  /** Whether it shows every column, unchanged or padded as Spark pads CHAR when it reads. */
  def isFull(columns: Seq[NamedExpression], child: LogicalPlan): Boolean = {
    val shown = columns.flatMap(readOf)
    shown.length == columns.length && child.outputSet.subsetOf(AttributeSet(shown))
  }

  private def readOf(column: NamedExpression): Option[Attribute] = column match {
    case plain: Attribute => Some(plain)
    // Any other expression over the column, even one with padding in it, may be somebody's mask.
    case padded @ Alias(expression, name) => expression.references.toSeq match {
        case Seq(of)
            if of.name == name && expression.semanticEquals(
              CharVarcharUtils.addPaddingForScan(of.withMetadata(padded.metadata))) =>
          Some(of)
        case _ => None
      }
    case _ => None
  }
}
