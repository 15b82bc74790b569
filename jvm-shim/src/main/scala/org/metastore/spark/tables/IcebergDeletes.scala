package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.IdentityHashMap

/**
 * Names the delete files of a data file by one short digest: with the same digest the same rows are deleted.
 *
 * Many data files share their delete files, and Iceberg gives the same object for each: a delete file is hashed once, and a data
 * file adds the hashes up, so that the order does not matter. Data files that share a list share its digest.
 *
 * @param nameMapping which columns files without field ids have: it decides what equality deletes compare
 */
final private class IcebergDeletes(nameMapping: Option[String]) {
  import IcebergDeletes._
  import Reflection.call

  private val known = new IdentityHashMap[AnyRef, DeleteFile]
  private val lists = new IdentityHashMap[Array[AnyRef], DeleteList]
  private var entries = 0

  /** The digest of the delete files of one data file; none without delete files. */
  def digest(deletes: Array[AnyRef]): Option[String] = if (deletes.isEmpty) None else Some(describe(deletes).digest)

  /** Whether some of them delete rows by their values. */
  def deleteByValue(deletes: Array[AnyRef]): Boolean = describe(deletes).hasEquality

  private def describe(deletes: Array[AnyRef]): DeleteList = {
    val remembered = lists.get(deletes)
    if (remembered != null) remembered // scalastyle:ignore
    else {
      val list = readList(deletes)
      remember(deletes, list)
      list
    }
  }

  /** Data files that share a list follow each other: of lists that they do not share only so many are worth their memory. */
  private def remember(deletes: Array[AnyRef], list: DeleteList): Unit = {
    entries += deletes.length
    if (entries > MostEntries) {
      lists.clear()
      entries = deletes.length
    }
    lists.put(deletes, list)
  }

  private def readList(deletes: Array[AnyRef]): DeleteList = {
    val sum = new Array[Long](Words)
    var hasEquality = false
    deletes.foreach { delete =>
      val file = describeFile(delete)
      hasEquality |= file.isEquality
      file.addTo(sum)
    }
    DeleteList(render(deletes.length, sum), hasEquality)
  }

  private def describeFile(delete: AnyRef): DeleteFile = known.computeIfAbsent(delete, read(_))

  private def read(delete: AnyRef): DeleteFile = {
    val isEquality = TaskDeletes.isEquality(delete)
    val meaning = if (isEquality) nameMapping.getOrElse("") else ""
    DeleteFile(isEquality, hash(s"${IcebergTable.pathOf(delete)}\n${place(delete)}\n$meaning"))
  }

  /** Where a deletion vector is in its file, which holds many. */
  private def place(delete: AnyRef): String =
    if (!IcebergTable.isVector(delete)) ""
    else s"${call[AnyRef](delete, "contentOffset")}+${call[AnyRef](delete, "contentSizeInBytes")}"
}

private object IcebergDeletes {
  private val Words = 4

  /** Of the lists that are remembered, so that they take no more memory than some thousand data files. */
  private val MostEntries = 1 << 22

  final private case class DeleteFile(isEquality: Boolean, hash: Array[Long]) {
    def addTo(sum: Array[Long]): Unit = {
      var word = 0
      while (word < Words) {
        sum(word) += hash(word)
        word += 1
      }
    }
  }

  /** The delete files of a data file. */
  final private case class DeleteList(digest: String, hasEquality: Boolean)

  private def hash(text: String): Array[Long] = {
    val words = ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))).asLongBuffer
    Array.fill(Words)(words.get())
  }

  private def render(files: Int, words: Array[Long]): String = f"$files%d-" + words.map(word => f"$word%016x").mkString
}
