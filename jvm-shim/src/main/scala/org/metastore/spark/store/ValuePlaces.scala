package org.metastore.spark.store

/**
 * In which data files of a snapshot each of some values of one column lives, and in how many of their rows: one row group.
 *
 * @param values the values
 * @param starts where the files of each value begin in `files`, and the end of the last
 * @param files  places in the snapshot's list of data files
 * @param counts rows of these files that have the value
 */
private[store] final class Postings(values: PostingValues, starts: Array[Int], files: Array[Int], counts: Array[Long]) {

  /** Rows with one of the points, by data file. */
  def of(points: Points): PostingCounts = {
    val entries = values.find(points).flatMap(value => starts(value) until starts(value + 1))
    PostingCounts(Gather.ints(files, entries), Gather.longs(counts, entries))
  }

  /** Rows with any of the values, by data file. */
  def total: PostingCounts = PostingCounts(files, counts)

  /** Bytes in memory. */
  def weight: Long = 100L + values.weight + starts.length * 4L + files.length * 12L
}

/** Rows by data file of a snapshot; a file may stand there more than once. */
private[store] final case class PostingCounts(files: Array[Int], counts: Array[Long])

private[store] object PostingCounts {

  /** All of them together, by data file. */
  def sum(found: Seq[PostingCounts], number: Int): Array[Long] = {
    val sums = new Array[Long](number)
    for (PostingCounts(files, counts) <- found; i <- files.indices) sums(files(i)) = Math.addExact(sums(files(i)), counts(i))
    sums
  }
}

/** The values of a row group, in its order. */
private[store] sealed trait PostingValues {
  def length: Int

  /** Places of the values that are among the points. */
  def find(points: Points): Array[Int]

  /** Bytes in memory. */
  def weight: Long
}

private[store] object PostingValues {

  /** Integers, or doubles as their keys. */
  final class Longs(values: Array[Long]) extends PostingValues {
    override def length: Int = values.length
    override def weight: Long = values.length * 8L

    override def find(points: Points): Array[Int] = points match {
      case asked: Points.Longs => places(length)(i => asked.has(values(i)))
      case _ => Array.emptyIntArray
    }
  }

  /** Bytes, in the order of bounds. */
  final class Bytes(values: Array[Array[Byte]]) extends PostingValues {
    override def length: Int = values.length
    override def weight: Long = values.iterator.map(value => 24L + value.length).sum

    override def find(points: Points): Array[Int] = points match {
      case asked: Points.Bytes => places(length)(i => asked.has(values(i)))
      case _ => Array.emptyIntArray
    }
  }

  private def places(length: Int)(isAsked: Int => Boolean): Array[Int] = {
    val found = Array.newBuilder[Int]
    var i = 0
    while (i < length) {
      if (isAsked(i)) found += i
      i += 1
    }
    found.result()
  }
}
