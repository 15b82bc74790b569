package org.metastore.spark.store

/** Decoded statistics that stay in the driver's memory. */
private[store] trait CacheWeight {

  /** Bytes, about. */
  def weight: Long
}

/**
 * One column of a block as stored, by data file: arrays of the block's number of files. Doubles stand as `DoubleOrder.key`,
 * long decimals with the sign bit flipped. Counts: -1 is unknown.
 *
 * @param present the block has a row for this file
 * @param lo      of integers and doubles, else null
 * @param loBytes of binary values, else null
 */
private[store] final class BlockColumn(
    val present: Array[Boolean], val rows: Array[Long], val nulls: Array[Long], val nans: Array[Long], val lo: Array[Long],
    val hi: Array[Long], val loBytes: Array[Array[Byte]], val hiBytes: Array[Array[Byte]], val flags: Array[Byte]) extends CacheWeight {

  override def weight: Long = {
    val fixed = present.length * (1L + 3 * 8 + 1) + (if (lo == null) 0 else present.length * 16L)
    fixed + size(loBytes) + size(hiBytes)
  }

  private def size(values: Array[Array[Byte]]): Long = {
    var sum = 0L
    var i = 0
    while (values != null && i < values.length) {
      sum += (if (values(i) == null) 8 else 24 + values(i).length)
      i += 1
    }
    sum
  }
}

private[store] object BlockColumn {

  /** Bytes that a data file takes at most, beside its byte arrays. */
  val MostFixedBytes = 44L
}

/** Distinct counts and lengths of one column of a block, by data file; -1 and NaN are unknown. */
private[store] final class BlockSizes(val distinct: Array[Long], val avgLen: Array[Double], val maxLen: Array[Long]) extends CacheWeight {
  override def weight: Long = distinct.length * BlockSizes.FileBytes
}

private[store] object BlockSizes {
  val FileBytes = 24L
}

/**
 * Rows of the files of a block.
 *
 * @param files by ordinal; -1: unknown
 */
private[store] final class BlockRows(val files: Array[Long])

/** The data files of a block and where each path stands in it. */
private[store] final class BlockFiles(
    paths: Array[String], sizes: Array[Long], modified: Array[Long], val rows: BlockRows) {
  private lazy val places = new PathIndex(paths)

  def length: Int = paths.length

  lazy val weight: Long = paths.iterator.map(path => 100L + path.length).sum

  /** Ordinal in the block of each file of the list, -1 where path, size or modification time are not known here. */
  def join(files: FileList): Array[Int] = {
    val joined = new Array[Int](files.length)
    var expected = 0
    var i = 0
    while (i < joined.length) {
      val path = files.paths(i)
      // Scans mostly list files in the order in which they were analyzed.
      val found = if (expected < paths.length && paths(expected) == path) expected else places.find(path)
      joined(i) = if (found >= 0 && same(found, files, i)) found else -1
      if (found >= 0) expected = found + 1
      i += 1
    }
    joined
  }

  private def same(file: Int, files: FileList, i: Int): Boolean =
    sizes(file) == files.sizes(i) && (files.modified == null || modified(file) == files.modified(i))
}

/** Where each of some paths stands among them; of equal ones the last. */
private final class PathIndex(paths: Array[String]) {
  private val mask = Integer.highestOneBit(math.max(paths.length, 1)) * 4 - 1
  private val slots = new Array[Int](mask + 1) // position + 1; 0 is free
  paths.indices.foreach(i => slots(slotOf(paths(i))) = i + 1)

  /** -1 where it is not among them. */
  def find(path: String): Int = slots(slotOf(path)) - 1

  /** The slot of a path, or the free one where it would stand. */
  private def slotOf(path: String): Int = {
    val hash = path.hashCode
    var slot = (hash ^ (hash >>> 15)) & mask
    var steps = 0
    while (slots(slot) != 0 && paths(slots(slot) - 1) != path) {
      slot = (slot + 1) & mask
      steps += 1
      if (steps > PathIndex.MaxSteps) throw new IllegalArgumentException("its paths were made to have the same hash")
    }
    slot
  }
}

private object PathIndex {
  private val MaxSteps = 1 << 12
}
