package org.metastore.spark.pruning

/**
 * The number of rows of a data file that deletes take away.
 *
 * @param isExact whether the number is exact; else it may be less
 */
final case class DeletedRows(atMost: Long, isExact: Boolean) {

  /** Whether every row of the file is live. */
  def isZero: Boolean = atMost == 0

  /** Whether the number has a limit. */
  def isKnown: Boolean = atMost < Long.MaxValue

  /** Whether `liveOf` is exact for a file of `rows` rows; a deletion vector may list rows beyond them. */
  def isExactOf(rows: Long): Boolean = isExact && atMost <= rows

  /** The number of rows that are certain to be live among `rows` rows of the file. */
  def liveOf(rows: Long): Long = math.max(0L, rows - atMost)
}

object DeletedRows {

  /** No deleted row. */
  val Zero: DeletedRows = exactly(0L)

  /** Any number of rows, up to all. */
  val Unknown: DeletedRows = atMost(Long.MaxValue)

  /** Exactly this number of rows. */
  def exactly(rows: Long): DeletedRows = DeletedRows(rows, isExact = true)

  /** At most this number of rows. */
  def atMost(rows: Long): DeletedRows = DeletedRows(rows, isExact = false)
}
