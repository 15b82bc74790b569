package org.metastore.spark.sql.functions

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._
import org.metastore.spark.tables.{DeltaFile, DeltaTable}

/**
 * `metastore_facts(table)`: what ANALYZE has to know of a Delta table at the version that its name stands for. Only Delta
 * itself reads every kind of Delta log; Python asks it through SQL.
 *
 * The first row has `facts`, JSON; each other row is one data file.
 */
object FactsFunction extends TableFunction {
  override val name = "facts"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true))
  override val schema: StructType = StructType.fromDDL(
    "facts STRING, path STRING, location STRING, size BIGINT, rows BIGINT, deleted_rows BIGINT, deletes STRING, partition MAP<STRING, STRING>")
  override val meaning = "What ANALYZE knows of a Delta table and its data files"

  private val mapper = new ObjectMapper

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val name = call.text("table")
    ResolvedName.resolve(session, name) match {
      case delta: DeltaTable => Answer.row(json(delta), None, None, None, None, None, None, None) +: delta.current.toSeq.flatMap(delta.filesOf).map(row)
      case other => throw MetastoreException.unsupportedTable(name, s"it is of format ${other.format}")
    }
  }

  private def row(file: DeltaFile): InternalRow =
    Answer.row(None, file.live.path, file.location, file.live.size, file.live.rows, file.live.deletedRows, file.deletes,
      Answer.texts(file.live.partition.toSeq))

  private def json(table: DeltaTable): String = {
    val leaves = table.leaves(None).map { leaf =>
      Map[String, Any]("key" -> leaf.key, "path" -> leaf.path.asJava, "type" -> leaf.dataType.catalogString).asJava
    }
    val facts = Map[String, Any](
      "uuid" -> table.uuid, "location" -> table.location, "snapshot" -> table.current.orNull, "leaves" -> leaves.asJava,
      "partition_columns" -> table.partitionColumns.asJava, "field_ids" -> table.fieldIds.asJava, "properties" -> table.properties.asJava)
    mapper.writeValueAsString(facts.asJava)
  }
}
