package org.metastore.spark.tables

/** The theta sketch of a column of a snapshot, and the number of distinct values that it estimates. */
final case class PublishedSketch(key: String, bytes: Array[Byte], distinct: String)
