package org.metastore.spark.analyze

import java.util.{Map => JavaMap}

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession

import org.metastore.spark.tables.{ReadPermission, TableLookup}

/** Tells Python how a table reaches its files, over py4j: SQL would show the keys to people. */
object TableStorage {

  /** Settings and keys of a table for what lies at a location, as its format calls them; none where Hadoop reads it. */
  def properties(session: SparkSession, table: String, location: String): JavaMap[String, String] =
    ReadPermission.asActive(session)(TableLookup.resolve(session, table).storageProperties(location).asJava)
}
