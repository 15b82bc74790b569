package org.metastore.spark.store

/**
 * In which data files of a snapshot each of some values of one column lives, and in how many of their rows: one row group.
 *
 * @param values the values
 * @param starts where the files of each value begin in `files`, and the end of the last
 * @param files  places in the snapshot's list of data files
 * @param counts rows of these files that have the value
 */
private[store] final class ValuePlaces(values: ListedValues, starts: Array[Int], files: Array[Int], counts: Array[Long]) {

  /** Rows with one of the points, by data file. */
  def of(points: Points): FileCounts = {
    val entries = values.find(points).flatMap(value => starts(value) until starts(value + 1))
    FileCounts(Picked.ints(files, entries), Picked.longs(counts, entries))
  }

  /** Rows with any of the values, by data file. */
  def total: FileCounts = FileCounts(files, counts)

  /** Bytes in memory. */
  def weight: Long = 100L + values.weight + starts.length * 4L + files.length * 12L
}

/** Rows by data file of a snapshot; a file may stand there more than once. */
private[store] final case class FileCounts(files: Array[Int], counts: Array[Long])

private[store] object FileCounts {

  /** All of them together, by data file. */
  def sum(found: Seq[FileCounts], number: Int): Array[Long] = {
    val sums = new Array[Long](number)
    for (FileCounts(files, counts) <- found; i <- files.indices) sums(files(i)) = Math.addExact(sums(files(i)), counts(i))
    sums
  }
}

/** The values of a row group, in its order. */
private[store] sealed trait ListedValues {
  def length: Int

  /** Places of the values that are among the points. */
  def find(points: Points): Array[Int]

  /** Bytes in memory. */
  def weight: Long
}

private[store] object ListedValues {

  /** Integers, or doubles as their keys. */
  final class Longs(values: Array[Long]) extends ListedValues {
    override def length: Int = values.length
    override def weight: Long = values.length * 8L

    override def find(points: Points): Array[Int] = points match {
      case asked: Points.Longs => places(length)(i => asked.has(values(i)))
      case _ => Array.emptyIntArray
    }
  }

  /** Bytes, in the order of bounds. */
  final class Bytes(values: Array[Array[Byte]]) extends ListedValues {
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
