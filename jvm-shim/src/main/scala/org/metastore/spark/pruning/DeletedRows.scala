package org.metastore.spark.pruning

/**
 * The number of rows of a data file that deletes take away.
 *
 * @param isExact whether the number is exact; else it may be less
 */
final case class DeletedRows(atMost: Long, isExact: Boolean) {

  /** Whether every row of the file is live. */
  def isZero: Boolean = atMost == 0

  /** Whether anything is known of them. */
  def isKnown: Boolean = atMost < Long.MaxValue

  /** Whether the number of live rows among `rows` rows is certain: a deletion vector may list rows that do not exist. */
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
