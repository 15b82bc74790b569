package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.IdentityHashMap

/**
 * Names the delete files of a data file by one short digest: with the same digest the same rows are deleted.
 *
 * Many data files share their delete files, and Iceberg gives the same object for each: a delete file is hashed once, and a data
 * file adds the hashes up, so that the order does not matter.
 *
 * @param nameMapping which columns files without field ids have: it decides what equality deletes compare
 */
final private class IcebergDeletes(nameMapping: Option[String]) {
  import IcebergDeletes._
  import Reflection.call

  private val known = new IdentityHashMap[AnyRef, DeleteFile]

  /** The digest of the delete files of one data file; none without delete files. */
  def digest(deletes: Seq[AnyRef]): Option[String] =
    if (deletes.isEmpty) None else Some(render(deletes.size, addUp(deletes)))

  /** Whether some of them delete rows by their values. */
  def deleteByValue(deletes: Seq[AnyRef]): Boolean = deletes.exists(describe(_).isEquality)

  private def addUp(deletes: Seq[AnyRef]): Array[Long] = {
    val sum = new Array[Long](Words)
    deletes.foreach { delete =>
      val hash = describe(delete).hash
      var word = 0
      while (word < Words) {
        sum(word) += hash(word)
        word += 1
      }
    }
    sum
  }

  private def describe(delete: AnyRef): DeleteFile = known.computeIfAbsent(delete, read(_))

  private def read(delete: AnyRef): DeleteFile = {
    val isEquality = call[AnyRef](delete, "content").toString == "EQUALITY_DELETES"
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

  final private case class DeleteFile(isEquality: Boolean, hash: Array[Long])

  private def hash(text: String): Array[Long] = {
    val words = ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))).asLongBuffer
    Array.fill(Words)(words.get())
  }

  private def render(files: Int, words: Array[Long]): String = f"$files%d-" + words.map(word => f"$word%016x").mkString
}
