package org.metastore.spark.statistics.values

import org.metastore.spark.statistics.objects.{Gather, Values}

/** In which data files of a snapshot each of some values of one column lives, and in how many of their rows: one row group. */
private[statistics] final class Postings(
    values: Values,
    starts: Array[Int],
    files: Array[Int],
    counts: Array[Long]) {

  /** Rows with one of the points, by data file. */
  def countPostings(points: Values): PostingCounts = {
    val entries = values.placesIn(points).flatMap(value => starts(value) until starts(value + 1))
    PostingCounts(Gather(files, entries), Gather(counts, entries))
  }

  /** Rows with any of the values, by data file. */
  def total: PostingCounts = PostingCounts(files, counts)

  /** Bytes in memory. */
  def weight: Long = 100L + values.weight + starts.length * 4L + files.length * 12L
}

/** Rows by data file of a snapshot; a file may stand there more than once. */
private[statistics] final case class PostingCounts(files: Array[Int], counts: Array[Long])

private[statistics] object PostingCounts {

  /** The sum of several counts, by data file. */
  def sum(found: Seq[PostingCounts], number: Int): Array[Long] = {
    val sums = new Array[Long](number)
    for {
      PostingCounts(files, counts) <- found
      i <- files.indices
    } sums(files(i)) = Math.addExact(sums(files(i)), counts(i))
    sums
  }
}
