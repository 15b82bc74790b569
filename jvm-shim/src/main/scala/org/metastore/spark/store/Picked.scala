package org.metastore.spark.store

/** Elements of an array, by their places. Without boxing. */
private[store] object Gather {

  def longs(values: Array[Long], places: Array[Int]): Array[Long] = {
    val out = new Array[Long](places.length)
    var i = 0
    while (i < out.length) {
      out(i) = values(places(i))
      i += 1
    }
    out
  }

  def ints(values: Array[Int], places: Array[Int]): Array[Int] = {
    val out = new Array[Int](places.length)
    var i = 0
    while (i < out.length) {
      out(i) = values(places(i))
      i += 1
    }
    out
  }

  def bytes(values: Array[Byte], places: Array[Int]): Array[Byte] = {
    val out = new Array[Byte](places.length)
    var i = 0
    while (i < out.length) {
      out(i) = values(places(i))
      i += 1
    }
    out
  }

  def booleans(values: Array[Boolean], places: Array[Int]): Array[Boolean] = {
    val out = new Array[Boolean](places.length)
    var i = 0
    while (i < out.length) {
      out(i) = values(places(i))
      i += 1
    }
    out
  }
}
