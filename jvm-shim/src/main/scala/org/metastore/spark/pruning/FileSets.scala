package org.metastore.spark.pruning

import java.util.BitSet

/** Files of a scan, by their places in it. */
private[spark] object FileSets {

  def all(length: Int): BitSet = {
    val files = new BitSet(length)
    files.set(0, length)
    files
  }

  /** Those of which a test is true. */
  def where(length: Int)(test: Int => Boolean): BitSet = {
    val words = new Array[Long]((length + 63) / 64)
    var file = 0
    while (file < length) {
      if (test(file)) words(file >> 6) |= 1L << file
      file += 1
    }
    BitSet.valueOf(words)
  }

  def both(some: BitSet, others: BitSet): BitSet = combine(some)(_.and(others))
  def either(some: BitSet, others: BitSet): BitSet = combine(some)(_.or(others))
  def without(some: BitSet, others: BitSet): BitSet = combine(some)(_.andNot(others))

  private def combine(files: BitSet)(change: BitSet => Unit): BitSet = {
    val made = files.clone().asInstanceOf[BitSet]
    change(made)
    made
  }
}
