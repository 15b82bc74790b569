package org.metastore.spark.pruning

/**
 * How many rows of a data file deletes take away.
 *
 * @param isExact whether they take away so many, and not fewer
 */
final case class DeletedRows(atMost: Long, isExact: Boolean) {

  /** Whether every row of the file is live. */
  def isZero: Boolean = atMost == 0

  /** Whether anything is known of them. */
  def isKnown: Boolean = atMost < Long.MaxValue

  /** Whether it is certain how many of so many rows of the file are live: a vector may list others. */
  def isExactOf(rows: Long): Boolean = isExact && atMost <= rows

  /** How many rows are certain to be live among so many rows of the file. */
  def liveOf(rows: Long): Long = math.max(0L, rows - atMost)
}

object DeletedRows {

  /** Those of a file without deletes. */
  val Zero: DeletedRows = exactly(0L)

  /** Those of a file of which every row may be deleted. */
  val Unknown: DeletedRows = atMost(Long.MaxValue)

  /** So many rows, and not fewer. */
  def exactly(rows: Long): DeletedRows = DeletedRows(rows, isExact = true)

  /** So many rows, or fewer. */
  def atMost(rows: Long): DeletedRows = DeletedRows(rows, isExact = false)
}
