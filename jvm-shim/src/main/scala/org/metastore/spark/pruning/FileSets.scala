package org.metastore.spark.pruning

import java.util.BitSet

/** Sets of a scan's files, by their index. */
private[spark] object FileSets {

  def all(length: Int): BitSet = {
    val files = new BitSet(length)
    files.set(0, length)
    files
  }

  /** The files that pass a test. */
  def where(length: Int)(test: Int => Boolean): BitSet = {
    val words = new Array[Long]((length + 63) / 64)
    var file = 0
    while (file < length) {
      if (test(file)) words(file >> 6) |= 1L << file
      file += 1
    }
    BitSet.valueOf(words)
  }

  def both(a: BitSet, b: BitSet): BitSet = changeCopy(a)(_.and(b))
  def either(a: BitSet, b: BitSet): BitSet = changeCopy(a)(_.or(b))
  def without(a: BitSet, b: BitSet): BitSet = changeCopy(a)(_.andNot(b))

  private def changeCopy(files: BitSet)(change: BitSet => Unit): BitSet = {
    val copy = files.clone().asInstanceOf[BitSet]
    change(copy)
    copy
  }
}
