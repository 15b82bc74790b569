package org.metastore.spark.statistics.columns

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.objects.Values

/** The number of distinct values of a column in `files` files of a table. */
final case class TableDistinct(distinct: Double, files: Int)

/**
 * Groups of files, each as if it were one file: a condition that no row of the group meets excludes all its
 * files.
 */
trait FileGroupStatistics {

  def length: Int

  /** The group of a file of the scan; -1 where it is in none. */
  def groupOf(file: Int): Int

  /**
   * A column as `FileSetStatistics.column` has it, aligned with the groups. A group with an unknown file is
   * unknown.
   */
  def column(key: String, dataType: DataType): Either[Reason, ColumnSummary]
}

/**
 * A table's statistics joined with the files of one scan. Arrays are aligned with `files` and never to be
 * changed.
 */
trait FileSetStatistics {

  def files: FileList

  /** Digest of the manifest that the statistics come from. */
  def fingerprint: String

  /** Physical rows of each file, -1: unknown. */
  def rows: Array[Long]

  /**
   * Whether some block knows the file (by path and size, and modification time where that is part of the
   * key).
   */
  def isKnown(file: Int): Boolean

  /** Number of files of the scan that some block knows. */
  def knownFiles: Int

  /**
   * Reads several columns at once, so that one request per object and row group fetches them all; afterwards
   * `column` answers from memory. Call it before asking for columns one by one.
   */
  def load(columns: Seq[(String, DataType)]): Unit

  /**
   * Bounds and counts of one column. `Left` where no file has usable statistics: no such column, another
   * type, damage, the time limit. Never throws.
   *
   * @param key      the column's key (docs/format.md, "Identity")
   * @param dataType its type in the query, to which the stored values are converted if that is exact
   */
  def column(key: String, dataType: DataType): Either[Reason, ColumnSummary]

  /** Distinct counts and lengths of one column, for the optimizer. Never throws. */
  def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes]

  /** Exact sums of one column, for aggregates. Never throws. */
  def sums(key: String, dataType: DataType): Either[Reason, ColumnSums]

  /**
   * Lists of values and bloom filters of a column. Never throws.
   *
   * @param selected the files to answer for: other files answer false
   * @param filters  whether bloom filters are of use, too
   * @param most     the most listed values that are worth reading
   */
  def values(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      filters: Boolean,
      most: Long = Long.MaxValue): ColumnValues

  /**
   * The number of rows with each value, deleted rows included, in the selected files in which all values but
   * NULL are listed. Never throws.
   */
  def valueCounts(key: String, dataType: DataType, selected: Array[Int]): collection.Map[Int, CountedValues]

  /**
   * The number of rows with a value in each of some files, deleted rows included; -1 if unknown. Never
   * throws.
   *
   * @param value    Catalyst's internal value; null counts the rows without one
   * @param selected the files, in the order of the result
   */
  def frequencies(key: String, dataType: DataType, value: Any, selected: Array[Int]): Array[Long]

  /**
   * Groups of files with common statistics, to exclude them together. Never throws.
   *
   * @param columns keys and types of the columns that will be needed: they are read at once
   * @return one entry for each large block of statistics
   */
  def groups(columns: Seq[(String, DataType)]): Seq[FileGroupStatistics]

  /** The statistics of some of the files: only the parts of columns that these need are read. */
  def among(files: Array[Int]): FileSetStatistics
}

/** Different values, in no order, and how many rows have each. */
final case class CountedValues(values: Values, counts: Array[Long])

/** Single values of one column, by file of a scan. Unknown files answer false. */
trait ColumnValues {

  /** For each file, whether it is certain that no row has one of the values. */
  def lack(points: Values): Int => Boolean

  /** For each file, whether it is certain that each row has one of the values, or NULL. */
  def within(points: Values): Int => Boolean

  /** All values of a file but NULL, where they are listed. */
  def listed(file: Int): Option[Values]

  /** The source of these answers for a file. */
  def evidence(file: Int): Option[ValueEvidence]
}

object ColumnValues {

  /** Nothing is known. */
  object Unknown extends ColumnValues {
    override def lack(points: Values): Int => Boolean = _ => false
    override def within(points: Values): Int => Boolean = _ => false
    override def listed(file: Int): Option[Values] = None
    override def evidence(file: Int): Option[ValueEvidence] = None
  }
}

/** The source of the known values of a column in a file. */
sealed trait ValueEvidence {

  /** The source as the end of a sentence. */
  def text: String
}

object ValueEvidence {

  /** A list of all values. */
  final case class InList(count: Int) extends ValueEvidence {
    override def text: String = s", all $count values listed"
  }

  /** Lists of the table with the files of each value. */
  object InIndex extends ValueEvidence {
    override def text: String = ", where each value is listed"
  }

  /** A bloom filter, which excludes most other values. */
  object InFilter extends ValueEvidence {
    override def text: String = ", bloom filter"
  }
}
