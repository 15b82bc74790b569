package org.metastore.spark.statistics.columns

/** The data files of a block, and the ordinal of each path. */
private[statistics] final class BlockFiles(
    paths: Array[String],
    sizes: Array[Long],
    modified: Array[Long],
    val rows: BlockRows) {
  private lazy val index = new PathIndex(paths)

  def length: Int = paths.length

  lazy val weight: Long = paths.iterator.map(path => 100L + path.length).sum

  /**
   * Ordinal in the block of each file of the list, -1 where path, size or the rest of the key are not known
   * here.
   */
  def join(files: FileList): Array[Int] = {
    val joined = new Array[Int](files.length)
    var expected = 0
    var i = 0
    while (i < joined.length) {
      val path = files.paths(i)
      // Scans mostly list files in the order in which they were analyzed.
      val ordinal = if (expected < paths.length && paths(expected) == path) expected else index.find(path)
      joined(i) = if (ordinal >= 0 && same(ordinal, files, i)) ordinal else -1
      if (ordinal >= 0) expected = ordinal + 1
      i += 1
    }
    joined
  }

  private def same(file: Int, files: FileList, i: Int): Boolean =
    sizes(file) == files.sizes(i) && modified(file) == files.modifiedAt(i)
}

/** Finds the place of a path among paths; of equal ones the last. */
private final class PathIndex(paths: Array[String]) {
  private val mask = Integer.highestOneBit(math.max(paths.length, 1)) * 4 - 1
  private val slots = new Array[Int](mask + 1) // position + 1; 0 is free
  for (i <- paths.indices) slots(slotOf(paths(i))) = i + 1

  /** -1 where it is not among them. */
  def find(path: String): Int = slots(slotOf(path)) - 1

  /** The slot of a path, or the free slot for it. */
  private def slotOf(path: String): Int = {
    val hash = path.hashCode
    var slot = (hash ^ (hash >>> 15)) & mask
    while (slots(slot) != 0 && paths(slots(slot) - 1) != path) slot = (slot + 1) & mask
    slot
  }
}
