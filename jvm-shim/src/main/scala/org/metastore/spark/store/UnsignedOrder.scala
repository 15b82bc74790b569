package org.metastore.spark.store

/** Order of strings and binary values: unsigned bytes, a prefix before what it begins. */
object UnsignedOrder {
  def compare(a: Array[Byte], b: Array[Byte]): Int = java.util.Arrays.compareUnsigned(a, b)

  val comparator: java.util.Comparator[Array[Byte]] = (a, b) => compare(a, b)

  /** Eight bytes from `from` on as a signed integer: where two differ, they differ as what follows does. */
  def head(bytes: Array[Byte], from: Int): Long = {
    var head = 0L
    var i = from
    while (i < from + 8) {
      head = (head << 8) | (if (i < bytes.length) bytes(i) & 0xffL else 0L)
      i += 1
    }
    head ^ Long.MinValue
  }
}
