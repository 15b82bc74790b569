package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql.{ResultRow, Argument, Arguments, TableFunction, TableFunctions}

/** `metastore.help()`: one row a table function. */
object HelpFunction extends TableFunction {
  override val name = "help"
  override val arguments: Seq[Argument] = Nil
  override val schema: StructType = StructType.fromDDL("function STRING, arguments STRING, columns STRING, meaning STRING")
  override val meaning = "The table functions of the Metastore"
  override val needsSettings = false

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = TableFunctions.all.map { function =>
    val (required, optional) = function.arguments.partition(_.required)
    val arguments = required.map(_.name).mkString(", ") + optional.map { argument =>
      if (argument == function.arguments.head) s"[${argument.name}]" else s" [, ${argument.name}]"
    }.mkString
    ResultRow.row(s"metastore.${function.name}", arguments, function.schema.fieldNames.mkString(", "), function.meaning)
  }
}
