package org.metastore.spark.tables

import java.lang.reflect.Field
import java.util.{ArrayList, Arrays, Comparator, IdentityHashMap}

/**
 * The delete files that Iceberg's scan tasks apply to their data files.
 *
 * A table may have many times more pairs of a data file and a delete file than it has files. Tasks share
 * their delete files, and often the array that lists them: nothing here makes an object for a pair.
 */
object TaskDeletes {
  private val TaskClass = "org.apache.iceberg.BaseFileScanTask"

  /** The delete files of a scan task, not to be changed. */
  def deletesOf(task: AnyRef): Array[AnyRef] =
    // The method copies the array, and the copy stays in the task.
    if (task.getClass.getName == TaskClass && arrayOf.get(task.getClass) != null)
      arrayOf.get(task.getClass).get(task).asInstanceOf[Array[AnyRef]]
    else Reflection.call[java.util.List[AnyRef]](task, "deletes").toArray

  private val arrayOf = new ClassValue[Field] {
    override def computeValue(task: Class[_]): Field = Reflection.field(task, "deletes")
      .filter(_.getType.getComponentType != null).orNull
  }

  /** The deleted rows of a data file without delete files, or with a deletion vector; else None. */
  def countRows(deletes: Array[AnyRef], rowsOfFile: Long): Option[Long] =
    if (deletes.isEmpty) Some(0L)
    else if (deletes.length == 1 && IcebergMembers.isVector(deletes.head))
      DataFile.deletedRows(rows(deletes.head), Some(rowsOfFile))
    else None

  /** Whether a delete file deletes rows by their values. */
  private[tables] def isEquality(delete: AnyRef): Boolean =
    Reflection.call[AnyRef](delete, "content").toString == "EQUALITY_DELETES"

  /** The number of rows, or values, that a delete file lists. */
  private[tables] def rows(delete: AnyRef): Long = Reflection.call[Long](delete, "recordCount")
}

/**
 * Bounds of the rows that the delete files of a scan delete.
 *
 * Position delete files may name a row twice, and rows of other data files: together they delete at most as
 * many rows of a data file as they list.
 */
final class DeletedRowBounds {
  import DeletedRowBounds._

  // Tasks share their delete files.
  private val rowsOf = new IdentityHashMap[AnyRef, java.lang.Long]

  /**
   * The most rows that the delete files of a data file delete; None for equality deletes and for many files.
   */
  def mostDeleted(deletes: Array[AnyRef]): Option[Long] =
    if (deletes.length > MostAdded) None
    else {
      val rows = deletes.map(boundOf)
      if (rows.contains(Unbounded)) None else Some(rows.sum)
    }

  private def boundOf(delete: AnyRef): Long =
    rowsOf.computeIfAbsent(
      delete,
      file => if (TaskDeletes.isEquality(file)) Unbounded else TaskDeletes.rows(file)).longValue
}

private object DeletedRowBounds {

  /** To add up all delete files of each data file would take as long as there are pairs of them. */
  private val MostAdded = 16

  /** A value that is deleted may be that of any number of rows. */
  private val Unbounded = -1L
}

/**
 * Estimates of the rows that the delete files of a scan delete.
 *
 * A delete file of several data files is taken to delete equally many rows of each. Iceberg sorts the delete
 * files of a partition by age, and a data file has all of them from some age on. So a list whose first and
 * last file are those of the end of a longer list is taken to be that end, and only the longest lists are
 * read.
 *
 * @param lists the delete files of each data file
 */
final class DeletedRowEstimates(lists: Iterable[Array[AnyRef]]) {
  import DeletedRowEstimates._

  private val deletes = new IdentityHashMap[AnyRef, Delete]
  private val ends = new IdentityHashMap[Array[AnyRef], ListEnd]
  private val readLists = new ArrayList[ReadList]
  private var entriesLeft = MostRead

  private val isComplete = countDataFiles().forall { case (list, dataFiles) => findOrRead(list, dataFiles) }

  if (isComplete) {
    readLists.forEach(_.countDataFiles())
    readLists.forEach(_.addDeletedRows())
  }

  /** The deleted rows of a data file; None if it has equality deletes, or if there are too many lists. */
  def estimate(list: Array[AnyRef]): Option[Double] =
    if (list.isEmpty) Some(0.0)
    else if (!isComplete) None
    else Option(ends.get(list)).map(_.deletedRows).filterNot(_.isNaN)

  /** Each list once, with the number of its data files, the longest first. */
  private def countDataFiles(): Iterator[(Array[AnyRef], Int)] = {
    val dataFiles = new IdentityHashMap[Array[AnyRef], Integer]
    for (list <- lists)
      if (list.nonEmpty) dataFiles.merge(list, 1, Integer.sum(_, _))
    val distinct = dataFiles.keySet.toArray(Array.empty[Array[AnyRef]])
    Arrays.sort(distinct, Comparator.comparingInt[Array[AnyRef]](-_.length))
    distinct.iterator.map(list => list -> dataFiles.get(list).intValue)
  }

  /** Finds a list in one that was read, or reads it; false where too much was read already. */
  private def findOrRead(list: Array[AnyRef], dataFiles: Int): Boolean = {
    val end = findEnd(list).orElse(if (list.length <= entriesLeft) Some(read(list)) else None)
    for (listEnd <- end) {
      listEnd.list.begin(listEnd.index, dataFiles)
      ends.put(list, listEnd)
    }
    end.isDefined
  }

  private def findEnd(list: Array[AnyRef]): Option[ListEnd] =
    Option(deletes.get(list.head)).filter(first => first.list.isEnd(first.index, list))
      .map(first => new ListEnd(first.list, first.index))

  private def read(list: Array[AnyRef]): ListEnd = {
    entriesLeft -= list.length
    val reading = new ReadList(list.map(delete => deletes.computeIfAbsent(delete, new Delete(_))), list.last)
    reading.noteIndexes()
    readLists.add(reading)
    new ListEnd(reading, 0)
  }
}

private object DeletedRowEstimates {

  /** Entries of lists that are read: as many take as long as some thousand data files. */
  private val MostRead = 1 << 20

  /** A delete file. */
  private final class Delete(file: AnyRef) {

    /** A list with this file, and the file's index there. */
    var list: ReadList = _
    var index = 0

    var dataFiles = 0L

    /** The rows that it deletes of each data file; NaN: unknown. */
    lazy val share: Double =
      if (TaskDeletes.isEquality(file)) Double.NaN
      else TaskDeletes.rows(file).toDouble / dataFiles
  }

  /** A list that was read, from an index on. */
  private final class ListEnd(val list: ReadList, val index: Int) {
    def deletedRows: Double = list.deletedRows(index)
  }

  /** A list that was read. */
  private final class ReadList(deletes: Array[Delete], last: AnyRef) {
    private val beginning = new Array[Int](deletes.length)
    private val sums = new Array[Double](deletes.length)

    /** Whether another list, whose first delete file is at an index of this one, is the end of this one. */
    def isEnd(index: Int, other: Array[AnyRef]): Boolean =
      deletes.length - index == other.length && (last eq other.last)

    def noteIndexes(): Unit = for (index <- deletes.indices) {
      deletes(index).list = this
      deletes(index).index = index
    }

    /** Counts data files whose delete files are these from an index on. */
    def begin(index: Int, dataFiles: Int): Unit = beginning(index) += dataFiles

    def countDataFiles(): Unit = {
      var dataFiles = 0L
      for (index <- deletes.indices) {
        dataFiles += beginning(index)
        deletes(index).dataFiles += dataFiles
      }
    }

    def addDeletedRows(): Unit = {
      var sum = 0.0
      for (index <- deletes.indices.reverse) {
        sum += deletes(index).share
        sums(index) = sum
      }
    }

    /** The rows of one data file that the delete files from an index on delete. */
    def deletedRows(index: Int): Double = sums(index)
  }
}
