package org.metastore.spark.tables

import java.util.concurrent.atomic.AtomicInteger

/** Asks for the digests of lists of delete files that are named by numbers; odd ones delete rows by their values. */
object DeletesProbe {

  /** For each list, whose numbers a comma divides, its digest and whether rows are deleted by values; then how many paths were read. */
  def digests(lists: String): String = {
    val deletes = new IcebergDeletes(None)
    val paths = new AtomicInteger
    val files = lists.linesIterator.flatMap(_.split(",")).toSet[String].map(name =>
      name -> new NamedDelete(name, paths)).toMap
    val answers = lists.linesIterator.map { line =>
      val list: Array[AnyRef] = line.split(",").map(files(_))
      s"${deletes.digest(list).get} ${deletes.deleteByValue(list)}"
    }.toList
    (answers :+ paths.get.toString).mkString("\n")
  }
}

/** What is asked of a delete file. */
final class NamedDelete(name: String, paths: AtomicInteger) {
  def content: String = if (name.toInt % 2 == 1) "EQUALITY_DELETES" else "POSITION_DELETES"

  def location: String = {
    paths.incrementAndGet()
    name
  }
}
