package org.metastore.spark.analyze

import java.util.{List => JavaList, Map => JavaMap}

import scala.collection.JavaConverters._

import org.apache.spark.sql.SparkSession

import org.metastore.spark.tables.{PublishedSketch, ReadPermission, TableLookup}

/** Publishes sketches for other engines, over py4j. */
object TableSketches {

  /**
   * Publishes theta sketches of a snapshot's columns, by their keys, each with its number of distinct values.
   *
   * @return the keys of all columns with a published sketch
   */
  def publish(
      session: SparkSession,
      table: String,
      snapshot: String,
      sketches: JavaMap[String, Array[Byte]],
      distinct: JavaMap[String, String]): JavaList[String] = {
    val all =
      for ((key, bytes) <- sketches.asScala.toSeq) yield PublishedSketch(key, bytes, distinct.get(key))
    ReadPermission.asActive(session) {
      TableLookup.resolve(session, table).publish(snapshot, all).toSeq.asJava
    }
  }
}
