package org.metastore.spark.sql.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._
import org.metastore.spark.store.{FileKey, TableFileRow}

/** `metastore.files(table [, at])`: one row a live data file, analyzed or not. */
object FilesFunction extends TableFunction {
  override val name = "files"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true), Argument("at", required = false))
  override val schema: StructType = StructType.fromDDL(
    "path STRING, size BIGINT, rows BIGINT, deleted_rows BIGINT, partition MAP<STRING, STRING>, analyzed BOOLEAN, columns_analyzed BIGINT")
  override val meaning = "The data files of a snapshot; rows counts deleted rows too"

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val analyzed = TableContext.of(session, call.text("table"))
    val asked = analyzed.requestedSnapshot(call.value("at"))
    val live = asked.toSeq.flatMap(analyzed.table.dataFiles)
    val snapshot = analyzed.answeringSnapshot(asked, _ => true)
    val files = snapshot.map(new FileLevel(analyzed, _))
    val known = files.fold(Map.empty[FileKey, TableFileRow])(_.files.map(file => file.key -> file).toMap)
    val keys = analyzed.table.leaves(asked).map(_.key).toSet
    val counts = files.fold(Map.empty[String, Int])(level => level.columnCounts(live.flatMap(file => known.get(file.key)), keys))
    // Deletes belong to a snapshot: those of an ancestor say nothing about this one.
    val deletes = if (snapshot.map(_.id) == asked) known else Map.empty[FileKey, TableFileRow]
    live.map { file =>
      val deleted = deletes.get(file.key).flatMap(_.deletedRows).orElse(file.deletedRows)
      val rows = file.rows.orElse(known.get(file.key).flatMap(_.rows))
      ResultRow.row(file.path, file.size, rows, deleted, ResultRow.texts(file.partition.toSeq), known.get(file.key).exists(_.block.isDefined),
        counts.getOrElse(file.path, 0).toLong)
    }
  }
}
