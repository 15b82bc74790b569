package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Arrays, IdentityHashMap}

import org.metastore.spark.reason.Optional

/**
 * Names the delete files of a data file by one short digest: with the same digest the same rows are deleted.
 *
 * Many data files share their delete files, and Iceberg gives the same object for each: a delete file is
 * hashed once. The digest is the sum of the hashes, so that the order does not matter. Lists often share long
 * runs: [[DeleteSums]] adds such a run by one subtraction, and only compares its files.
 *
 * @param nameMapping the columns of files without field ids: it decides which values equality deletes compare
 */
final private class IcebergDeletes(nameMapping: Option[String]) {
  import IcebergDeletes._
  import Reflection.call

  private val hashed = new IdentityHashMap[AnyRef, DeleteFile]
  private val lists = new IdentityHashMap[Array[AnyRef], DeleteList]
  private val sums = new DeleteSums(describeFile)
  private var entries = 0

  /** The digest of the delete files of one data file; none without delete files. */
  def digest(deletes: Array[AnyRef]): Option[String] =
    Optional.when(deletes.nonEmpty)(describe(deletes).digest)

  /** Whether some of them delete rows by their values. */
  def deleteByValue(deletes: Array[AnyRef]): Boolean = describe(deletes).hasEquality

  private def describe(deletes: Array[AnyRef]): DeleteList = {
    val remembered = lists.get(deletes)
    if (remembered != null) remembered
    else {
      val list = sums.describeList(deletes)
      remember(deletes, list)
      list
    }
  }

  /** Remembers a list. Data files that share a list follow each other, so that a few lists suffice. */
  private def remember(deletes: Array[AnyRef], list: DeleteList): Unit = {
    entries += deletes.length
    if (entries > MostEntries) {
      lists.clear()
      entries = deletes.length
    }
    lists.put(deletes, list)
  }

  private def describeFile(delete: AnyRef): DeleteFile = hashed.computeIfAbsent(delete, read(_))

  private def read(delete: AnyRef): DeleteFile = {
    val isEquality = TaskDeletes.isEquality(delete)
    val meaning = if (isEquality) nameMapping.getOrElse("") else ""
    DeleteFile(isEquality, DeleteFile.hash(s"${IcebergMembers.pathOf(delete)}\n${range(delete)}\n$meaning"))
  }

  /** The byte range of a deletion vector in its file, which holds many vectors; else empty. */
  private def range(delete: AnyRef): String =
    if (!IcebergMembers.isVector(delete)) ""
    else s"${call[AnyRef](delete, "contentOffset")}+${call[AnyRef](delete, "contentSizeInBytes")}"
}

/**
 * Sums of the hashes of lists of delete files.
 *
 * Delete files are stored in the order of the lists, with the sums up to each. If a list shares a run with an
 * earlier one, only the run's first file is looked up.
 */
final private class DeleteSums(describe: AnyRef => DeleteFile) {
  import DeleteSums._

  private val indexes = new IdentityHashMap[AnyRef, Integer]
  private var files = new Array[AnyRef](FirstRoom)
  private var sums = new Array[Long](FirstRoom * DeleteFile.Words) // up to each file, this one included
  private var equalities = new Array[Int](FirstRoom)
  private var length = 0

  /** The sum of a list, and whether there are equality deletes in it. */
  def describeList(list: Array[AnyRef]): DeleteList = {
    if (length > MostStored) clear()
    val sum = new Array[Long](DeleteFile.Words)
    var (from, end, runs, equalityDeletes) = (0, -1, 0, 0)
    while (from < list.length) {
      val start = findIndex(list(from))
      if (start != end) runs += 1
      end = endOfRun(start, list, from)
      addTo(sum, start, end)
      equalityDeletes += equalitiesTo(end) - equalitiesTo(start)
      from += end - start
    }
    if (runs > MostRuns) list.foreach(append)
    DeleteList(DeleteFile.render(list.length, sum), equalityDeletes > 0)
  }

  private def findIndex(file: AnyRef): Int = {
    val index = indexes.get(file)
    if (index != null) index.intValue
    else {
      append(file)
      length - 1
    }
  }

  /** The end of the run of files from `start` on that equals the list from `from` on. */
  private def endOfRun(start: Int, list: Array[AnyRef], from: Int): Int = {
    val most = math.min(length, start + list.length - from)
    var end = start + 1
    while (end < most && (files(end) eq list(from + end - start))) end += 1
    end
  }

  private def addTo(sum: Array[Long], start: Int, end: Int): Unit = {
    var word = 0
    while (word < DeleteFile.Words) {
      sum(word) += sumTo(end, word) - sumTo(start, word)
      word += 1
    }
  }

  /** The sum of the files before an index. */
  private def sumTo(index: Int, word: Int): Long =
    if (index == 0) 0L else sums((index - 1) * DeleteFile.Words + word)

  private def equalitiesTo(index: Int): Int = if (index == 0) 0 else equalities(index - 1)

  private def append(file: AnyRef): Unit = {
    if (length == files.length) grow()
    val described = describe(file)
    files(length) = file
    equalities(length) = equalitiesTo(length) + (if (described.isEquality) 1 else 0)
    var word = 0
    while (word < DeleteFile.Words) {
      sums(length * DeleteFile.Words + word) = sumTo(length, word) + described.hash(word)
      word += 1
    }
    indexes.put(file, length)
    length += 1
  }

  private def grow(): Unit = {
    files = Arrays.copyOf(files, files.length * 2)
    sums = Arrays.copyOf(sums, sums.length * 2)
    equalities = Arrays.copyOf(equalities, equalities.length * 2)
  }

  private def clear(): Unit = {
    indexes.clear()
    Arrays.fill(files, null)
    length = 0
  }
}

private object DeleteSums {
  private val FirstRoom = 1024

  /** A list of more runs is stored once more as one run, for later lists like it. */
  private val MostRuns = 64

  /**
   * Most stored files, before the last list is added: about 70 MB, and twice as much while the arrays grow.
   */
  private val MostStored = 1 << 20
}

/** The delete files of a data file. */
final private case class DeleteList(digest: String, hasEquality: Boolean)

final private case class DeleteFile(isEquality: Boolean, hash: Array[Long])

private object DeleteFile {

  /** Number of 64-bit words of a hash, and of a sum of hashes. */
  val Words = 4

  def hash(text: String): Array[Long] = {
    val words =
      ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))).asLongBuffer
    Array.fill(Words)(words.get())
  }

  /** The digest of a number of delete files. */
  def render(files: Int, sum: Array[Long]): String = f"$files%d-" + sum.map(word => f"$word%016x").mkString
}

private object IcebergDeletes {

  /** Most entries of remembered lists, so that these take no more memory than some thousand data files. */
  private val MostEntries = 1 << 22
}
