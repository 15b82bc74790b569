package org.metastore.spark.analyze

import java.util.{Map => JavaMap}

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession

import org.metastore.spark.statistics.objects.LatestLookups
import org.metastore.spark.tables.{ReadPermission, TableLookup}

/** Tells Python how a table reaches its files, over py4j: SQL would show the keys to people. */
object TableStorage {

  /**
   * The settings of a table for a location, with its keys, as its format calls them; empty if Hadoop reads it.
   *
   * @param uuid of the table that is meant: its name may stand for another one by now
   */
  def properties(
      session: SparkSession,
      name: String,
      uuid: String,
      location: String): JavaMap[String, String] =
    ReadPermission.asActive(session) {
      val table = TableLookup.resolve(session, name)
      if (table.uuid != uuid) throw new IllegalStateException(s"$name is another table now")
      table.storageProperties(location).asJava
    }

  /** Makes the next query look for statistics that were written just now. */
  def noteChange(): Unit = LatestLookups.noteChange()
}
