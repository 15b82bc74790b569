package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

/** One argument of a table function, as `metastore.help()` shows it. */
final case class Argument(name: String, required: Boolean)

/**
 * A table function `metastore.<name>`: reads, never writes, never starts a job, unless it is deferred.
 *
 * The rows are made when the query is analyzed, so the answer of a view is as new as the query that reads it; by a thread of
 * their own, while no lock of Spark is held.
 */
trait TableFunction {
  def name: String
  def arguments: Seq[Argument]
  def schema: StructType

  /** One sentence for `metastore.help()`. */
  def meaning: String

  /** Whether a setting that has no value it can have stops the call. */
  def needsSettings: Boolean = true

  /** Whether `spark.metastore.read.timeout` ends a call. */
  def isLimited(call: Arguments): Boolean = true

  /**
   * What makes the rows when the statement is executed; None where they are made when it is analyzed.
   *
   * @throws MetastoreException what the user has to know at once
   */
  def jobRows(session: SparkSession, call: Arguments): Option[() => Seq[InternalRow]] = None

  /**
   * The answer, in Catalyst's internal values of `schema`.
   *
   * @throws MetastoreException what the user has to know instead: no such table, no statistics, ...
   */
  def rows(session: SparkSession, call: Arguments): Seq[InternalRow]
}
