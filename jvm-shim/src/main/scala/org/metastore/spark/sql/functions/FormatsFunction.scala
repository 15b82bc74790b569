package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql.{ResultRow, Argument, Arguments, TableFunction}
import org.metastore.spark.tables.FormatReleases

/** `metastore_formats()`: one row a table format whose jar the session has. `metastore doctor` asks it. */
object FormatsFunction extends TableFunction {
  override val name = "formats"
  override val arguments: Seq[Argument] = Nil
  override val schema: StructType = StructType.fromDDL("format STRING, found STRING, oldest STRING, newest STRING, refusal STRING")
  override val meaning = "Releases of the table formats that are found, and why one cannot be used"
  override val needsSettings = false

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] =
    FormatReleases.all(session.sharedState.jarClassLoader).map { release =>
      val format = release.format
      ResultRow.row(format.name, release.version, format.oldest, format.newest, release.refusal.map(_.sentence))
    }
}
