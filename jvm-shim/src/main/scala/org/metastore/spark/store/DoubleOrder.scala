package org.metastore.spark.store

/**
 * Spark's order of doubles as integers: `key(a) < key(b)` exactly where Spark says `a < b`. NaN is the largest and equal to
 * itself, -0.0 equals 0.0.
 */
object DoubleOrder {

  /** Key of NaN, above every other. */
  val NaN: Long = key(Double.NaN)

  def key(value: Double): Long = {
    val bits = java.lang.Double.doubleToLongBits(value + 0.0) // -0.0 + 0.0 is 0.0
    bits ^ ((bits >> 63) & Long.MaxValue)
  }

  /** The double of a key. */
  def value(key: Long): Double = java.lang.Double.longBitsToDouble(key ^ ((key >> 63) & Long.MaxValue))
}
