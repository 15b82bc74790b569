package org.metastore.spark.analyze

import org.apache.spark.sql.{Dataset, Row}
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Expression, If, InputFileName, IsNull, NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.METADATA_COL_ATTR_KEY
import org.apache.spark.sql.types.BooleanType

import org.metastore.spark.pruning.ColumnLookup
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.tables.{ReadPermission, TableLookup}

/**
 * Checks ANALYZE's own queries, over py4j: statistics of hidden rows or masked values must never serve
 * everybody.
 */
object RowPermission {

  /**
   * Checks that the rows are nothing but unchanged columns and fields of one relation, or whether these are
   * null.
   *
   * @throws MetastoreException METASTORE_UNSUPPORTED_TABLE
   */
  def requireColumns(table: String, rows: Dataset[Row]): Unit =
    if (!readsColumns(rows.queryExecution.analyzed)) throw MetastoreException.rowsHidden(table)

  /**
   * Checks that no rule of a plug-in changes a query before it runs.
   *
   * @throws MetastoreException METASTORE_ACCESS_DENIED, METASTORE_UNSUPPORTED_TABLE
   */
  def requireUnchanged(table: String, rows: Dataset[Row]): Unit =
    ReadPermission.requireUnchanged(table, rows.queryExecution)

  private def readsColumns(plan: LogicalPlan): Boolean = plan match {
    case Project(columns, child) =>
      columns.forall(isColumn) && TableLookup.relation(child).isInstanceOf[LeafNode]
    case _ => false
  }

  private def isColumn(column: NamedExpression): Boolean = column match {
    case Alias(If(IsNull(field), nothing, something), _) =>
      isField(field) && isFlag(nothing) && isFlag(something)
    case Alias(read, _) => isField(read) || isFlag(read) || isOfFile(read)
    case read => isField(read)
  }

  private def isField(read: Expression): Boolean = ColumnLookup.ColumnPath.unapply(read).isDefined

  private def isFlag(value: Expression): Boolean = value.foldable && value.dataType == BooleanType

  private def isOfFile(value: Expression): Boolean = {
    val columns = value.references
    if (columns.isEmpty) value.find(_.isInstanceOf[InputFileName]).isDefined
    else columns.forall(_.metadata.contains(METADATA_COL_ATTR_KEY))
  }
}
