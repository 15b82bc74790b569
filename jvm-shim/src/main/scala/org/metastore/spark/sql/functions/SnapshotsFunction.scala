package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._

/** `metastore.snapshots(table)`: one row an analyzed snapshot, oldest first. */
object SnapshotsFunction extends TableFunction {
  override val name = "snapshots"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true))
  override val schema: StructType = StructType.fromDDL(
    "snapshot STRING, analyzed_at TIMESTAMP, files BIGINT, files_total BIGINT, rows BIGINT, columns BIGINT, current BOOLEAN, " +
      "size_bytes BIGINT, live_size_bytes BIGINT")
  override val meaning = "The snapshots that were analyzed"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.of(session, call.text("table"))
    analyzed.manifest.toSeq.flatMap(_.snapshots).map { snapshot =>
      ResultRow.row(snapshot.id, ValueText.timestamp(snapshot.analyzedAt), snapshot.files, snapshot.filesTotal, snapshot.rows,
        snapshot.columns.length.toLong, analyzed.isCurrent(snapshot), snapshot.sizeBytes, snapshot.liveSizeBytes)
    }
  }
}
