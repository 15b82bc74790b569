package org.metastore.spark.analyze

import java.util.{List => JavaList, Map => JavaMap}

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession

import org.metastore.spark.statistics.objects.LatestLookups
import org.metastore.spark.tables.{FolderAccess, LakeTable, ReadPermission, TableLookup}

/**
 * The settings and keys by which a table reaches its files. Called over py4j: SQL would show the keys to
 * people.
 */
object TableStorage {

  /**
   * The settings of a table for a location, with its keys, as its format calls them; empty if it has none.
   *
   * @param uuid     the expected uuid: the name may stand for another table by now
   * @param uncached whether to load the table and its keys past the session's cache
   */
  def properties(
      session: SparkSession,
      name: String,
      uuid: String,
      location: String,
      uncached: Boolean): JavaMap[String, String] =
    read(session, name, uuid, uncached)(_.storageProperties(location).asJava)

  /** The prefixes of locations for which the table has separate keys. */
  def prefixes(session: SparkSession, name: String, uuid: String): JavaList[String] =
    read(session, name, uuid)(_.storagePrefixes.asJava)

  /** The table's own way to write to a folder. */
  def folderAccess(session: SparkSession, name: String, uuid: String, uri: String): FolderAccess =
    read(session, name, uuid)(_.folderAccess(uri)).getOrElse {
      throw new IllegalStateException(s"$name has no access of its own to $uri")
    }

  private def read[T](session: SparkSession, name: String, uuid: String, uncached: Boolean = false)(
      get: LakeTable => T): T =
    ReadPermission.asActive(session) {
      val table =
        if (uncached) TableLookup.resolveUncached(session, name) else TableLookup.resolve(session, name)
      if (table.uuid != uuid) throw new IllegalStateException(s"$name is another table now")
      get(table)
    }

  /** Makes the next query look for the statistics that were just written. */
  def noteChange(): Unit = LatestLookups.noteChange()
}
