package org.metastore.spark.sql.functions

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql._
import org.metastore.spark.tables.{FileFacts, TableFacts, SnapshotFacts}

/**
 * `metastore_facts(table [, files])`: what ANALYZE has to know of a table as its name stands for it, where only the JVM reads
 * that from its metadata. Python asks it through SQL.
 *
 * The first row has `facts`, JSON; each other row is one data file. With `files => false` there is the first row alone, with
 * what identifies the table: of whatever format it is, that is how Python asks whether this user may read it.
 */
object FactsFunction extends TableFunction {
  override val name = "facts"
  override val arguments: Seq[Argument] = Seq(Argument("table", required = true), Argument("files", required = false))
  override val schema: StructType = StructType.fromDDL(
    "facts STRING, path STRING, location STRING, size BIGINT, rows BIGINT, deleted_rows BIGINT, deletes STRING, " +
      "partition MAP<STRING, STRING>, modified BIGINT")
  override val meaning = "What ANALYZE knows of a table and its data files"

  /** ANALYZE of a large table waits for its list of files. */
  override def isLimited(call: Arguments): Boolean = false

  private val mapper = new ObjectMapper

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val name = call.text("table")
    val found = TableLookup.find(session, name)
    found.table match {
      case _ if call.optional("files").contains("false") => Seq(facts(identity(found)))
      case table: TableFacts =>
        table.refusal.foreach(why => throw MetastoreException.unsupportedTable(name, why))
        val listing = table.facts
        facts(identity(found) ++ described(table, listing)) +: listing.files.map(row)
      case other => throw MetastoreException.unsupportedTable(name, s"it is of format ${other.format}")
    }
  }

  private def facts(found: Map[String, Any]): InternalRow =
    ResultRow.row(mapper.writeValueAsString(found.asJava), None, None, None, None, None, None, None, None)

  private def row(file: FileFacts): InternalRow =
    ResultRow.row(None, file.live.path, file.location, file.live.size, file.live.rows, file.live.deletedRows, file.deletes,
      ResultRow.texts(file.live.partition.toSeq), file.live.modified)

  private def identity(found: TableHandle): Map[String, Any] = Map(
    "format" -> found.table.format, "name" -> found.name.orNull, "uuid" -> found.table.uuid, "location" -> found.table.location)

  private def described(table: TableFacts, listing: SnapshotFacts): Map[String, Any] = {
    val leaves = table.leaves(None).map { leaf =>
      Map[String, Any]("key" -> leaf.key, "path" -> leaf.path.asJava, "type" -> leaf.dataType.catalogString).asJava
    }
    Map(
      "required" -> table.requiredColumns.toSeq.sorted.asJava,
      "snapshot" -> listing.snapshot.orNull, "unsettled" -> listing.recentFiles.asJava,
      "has_other_rows" -> listing.hasOtherRows, "leaves" -> leaves.asJava,
      "partition_columns" -> table.partitionColumns.asJava, "field_ids" -> table.fieldIds.asJava, "properties" -> table.properties.asJava)
  }
}
