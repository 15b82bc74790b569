package org.metastore.spark.store

/** Arrays of one value. Scala's own `Array.fill` makes an object of every element. */
private[store] object Fill {
  def longs(length: Int, value: Long): Array[Long] = {
    val out = new Array[Long](length)
    java.util.Arrays.fill(out, value)
    out
  }

  def doubles(length: Int, value: Double): Array[Double] = {
    val out = new Array[Double](length)
    java.util.Arrays.fill(out, value)
    out
  }
}
