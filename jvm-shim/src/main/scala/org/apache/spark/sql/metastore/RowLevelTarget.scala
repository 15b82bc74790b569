package org.apache.spark.sql.metastore

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.write.{RowLevelOperation, RowLevelOperationTable}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** The target of an UPDATE, DELETE or MERGE, which Spark shows to its own packages only. */
object RowLevelTarget {

  /** The table whose rows such a command rewrites; any other table itself. */
  def tableOf(table: Table): Table = table match {
    case RowLevelOperationTable(rewritten, _) => rewritten
    case other => other
  }

  /** The table whose rows a command changes; None of other commands. */
  def fromCommand(command: V2WriteCommand): Option[Table] = command.table match {
    case Target(target) => Some(target.table)
    case _ => None
  }

  /** Whether a relation reads the target of a command. */
  def isRead(relation: DataSourceV2Relation): Boolean = relation.table.isInstanceOf[RowLevelOperationTable]

  /**
   * Puts another operation in the place of a command's, both where rows are read and where they are written:
   * Spark knows the reading side by the very object on the writing side.
   *
   * @param replaced the operation to use instead, for the table and its operation; None leaves the command as
   *                 it is
   */
  def replace(command: V2WriteCommand)(replaced: (
      Table,
      RowLevelOperation) => Option[RowLevelOperation]): LogicalPlan =
    command.table match {
      case target @ Target(old) =>
        replaced(old.table, old.operation).fold[LogicalPlan](command) { operation =>
          val table = old.copy(operation = operation)
          val query = command.query.transform {
            case read: DataSourceV2Relation if read.table eq old => withTable(read, table)
          }
          command.withNewTable(withTable(target, table)).withNewQuery(query)
        }
      case _ => command
    }

  private object Target {
    def unapply(relation: DataSourceV2Relation): Option[RowLevelOperationTable] =
      Option(relation.table).collect { case table: RowLevelOperationTable => table }
  }

  private def withTable(relation: DataSourceV2Relation, table: Table): DataSourceV2Relation = {
    val changed = relation.copy(table = table)
    changed.copyTagsFrom(relation)
    changed
  }
}
