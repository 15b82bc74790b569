package org.metastore.spark.store

import java.util.{BitSet => JBitSet}

/**
 * In which data files of a snapshot each value of one column lives, and in how many of their rows.
 *
 * @param keys   of each value: itself where it is a number, `DoubleOrder.key` of doubles, else its hash
 * @param starts where the files of each value begin in `files`, and the end of the last
 * @param files  places in the snapshot's list of data files
 * @param counts rows of these files that have the value
 * @param parts  where the values were read
 * @param number how many data files the snapshot lists
 */
private[store] final class ValuePlaces(
    keys: Array[Long], starts: Array[Int], files: Array[Int], counts: Array[Long], val parts: Seq[ValuePlaces.Part], number: Int) {

  /** By data file: rows that values are told of. A file of which they are not all tells nothing. */
  val totals: Array[Long] = {
    val sums = new Array[Long](number)
    files.indices.foreach(i => sums(files(i)) = Math.addExact(sums(files(i)), counts(i)))
    sums
  }

  /** Places of the values with one of some keys. */
  def find(isAsked: Long => Boolean): Array[Int] = {
    val found = Array.newBuilder[Int]
    var i = 0
    while (i < keys.length) {
      if (isAsked(keys(i))) found += i
      i += 1
    }
    found.result()
  }

  /** The data files that hold one of some values. */
  def holding(values: Array[Int]): JBitSet = {
    val found = new JBitSet(number)
    foreach(values)((file, count) => if (count > 0) found.set(file))
    found
  }

  /** How many rows of each data file have one of some values. */
  def rows(values: Array[Int]): Array[Long] = {
    val sums = new Array[Long](number)
    foreach(values)((file, count) => sums(file) += count)
    sums
  }

  private def foreach(values: Array[Int])(tell: (Int, Long) => Unit): Unit =
    for (value <- values; i <- starts(value) until starts(value + 1)) tell(files(i), counts(i))

  /** Bytes in memory. */
  def weight: Long = 100L * parts.size + keys.length * 12L + files.length * 12L + number * 8L
}

private[store] object ValuePlaces {

  /**
   * Values of one row group.
   *
   * @param first place of the first one here, and `row`, its row there
   */
  final case class Part(ref: ObjectRef, group: Int, first: Int, row: Int, length: Int)
}
