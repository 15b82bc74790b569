package org.metastore.spark.statistics.values

import org.metastore.spark.statistics.objects.{Gather, Values}

/**
 * The data files of a snapshot with each value of a column, with numbers of rows: one row group of the lists.
 */
private[statistics] final class Postings(
    values: Values,
    starts: Array[Int],
    files: Array[Int],
    counts: Array[Long]) {

  /** The number of rows with one of the points, by data file. */
  def countPostings(points: Values): PostingCounts = {
    val entries = values.placesIn(points).flatMap(value => starts(value) until starts(value + 1))
    PostingCounts(Gather(files, entries), Gather(counts, entries))
  }

  /** The number of rows with any of the values, by data file. */
  def total: PostingCounts = PostingCounts(files, counts)

  /** Bytes in memory. */
  def weight: Long = 100L + values.weight + starts.length * 4L + files.length * 12L
}

/** Numbers of rows by data file of a snapshot; a file may occur more than once. */
private[statistics] final case class PostingCounts(files: Array[Int], counts: Array[Long])

private[statistics] object PostingCounts {

  /** The sum of several counts for each of `number` data files. */
  def sum(parts: Seq[PostingCounts], number: Int): Array[Long] = {
    val sums = new Array[Long](number)
    for {
      PostingCounts(files, counts) <- parts
      i <- files.indices
    } sums(files(i)) = Math.addExact(sums(files(i)), counts(i))
    sums
  }
}
