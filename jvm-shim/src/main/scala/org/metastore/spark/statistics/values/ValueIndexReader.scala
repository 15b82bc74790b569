package org.metastore.spark.statistics.values

import java.lang.Long.compareUnsigned

import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.columns.TypePromotion
import org.metastore.spark.statistics.objects.{
  ChunkPages, ColumnDecoder, Encoding, Fill, ObjectReader, ObjectRef, PageStore, ParquetFooter, RowGroup,
  Values
}

/** A row group of an object with the data files of each value. */
private[statistics] final case class PostingRowGroup(ref: ObjectRef, group: Int, size: ReadSize)

/** Reads the data files of each value of a column, from `table-frequencies` of a snapshot's distribution. */
private[statistics] final class ValueIndexReader(objects: ObjectReader) {
  import ValueIndexReader._

  /** The number of rows that the lists of a column cover, by data file of a snapshot; -1 if unknown. */
  def coveredRows(ref: ObjectRef, column: Int, files: Int): Array[Long] = {
    val out = Fill.longs(files, -1)
    for (group <- objects.footer(ref).groupsOf(Set(column)))
      RowGroup.read(objects, ref, group, Seq("column", "file", "rows")) { rows =>
        for (span <- rows.spans(files).get(column)) {
          val counts = span.scatter(rows.longs("rows", -1), -1)
          for (file <- out.indices if counts(file) >= 0) out(file) = counts(file)
        }
      }
    out
  }

  /** The row groups of an object that may have values of a column. */
  def groups(
      ref: ObjectRef,
      column: Int,
      dataType: DataType,
      hashes: Option[Array[Long]]): Seq[PostingRowGroup] = objects.asDamage(ref) {
    val footer = objects.footer(ref)
    val groups = footer.groupsOf(Set(column))
    val selected = (hashes, footer.leastHashes) match {
      case (Some(some), Some(least)) =>
        groups.indices.filter(mayHaveHash(some, least, groups, _)).map(groups)
      case _ => groups
    }
    selected.map { group =>
      val chunks = leavesOf(footer, dataType).map(footer.chunk(group, _))
      PostingRowGroup(ref, group, ReadSize(chunks.map(_.values).sum, chunks.map(_.length).sum))
    }
  }

  /** The values of a column in a row group. */
  def cached(from: PostingRowGroup, column: Int, dataType: DataType, files: Int): CacheEntry[Postings] =
    CacheEntry[Postings](
      s"places:${from.ref.name}:${from.ref.footerSha256}:${from.group}:$column:$files",
      _.weight) {
      objects.asDamage(from.ref)(readGroup(from.ref, from.group, column, dataType, files))
    }

  private def readGroup(ref: ObjectRef, group: Int, column: Int, dataType: DataType, files: Int): Postings = {
    val footer = objects.footer(ref)
    val rows = footer.rowGroups(group).rows.toInt
    val leaves = leavesOf(footer, dataType)
    val pages = objects.chunks(ref, footer, group, leaves)
    val (from, until) = span(ColumnDecoder.longs(pages(leaves.head), rows, -1), column)
    val values = valuesOf(pages(leaves(1)), rows, from, until, dataType)
    val lists = leaves.drop(2).map(pages)
    val store = new ColumnReadStoreImpl(
      new PageStore(lists, rows),
      new GroupRecordConverter(footer.schema).getRootConverter,
      footer.schema,
      "")
    val entries = lists.map(new ListEntries(store, _))
    val builder = new Builder(files)
    for (row <- 0 until rows) {
      val isOfColumn = row >= from && row < until
      if (isOfColumn) builder.next()
      val (files, counts, everywhere) = (entries.head.next(), entries(1).next(), entries(2).next())
      if (files.length != counts.length)
        throw new IllegalArgumentException("a map has other keys than values")
      if (isOfColumn) {
        for (i <- files.indices) builder.add(files(i), counts(i))
        for (i <- everywhere.indices if everywhere(i) != 0) builder.add(i, everywhere(i))
      }
    }
    builder.result(values)
  }

  private def valuesOf(pages: ChunkPages, rows: Int, from: Int, until: Int, dataType: DataType): Values =
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues)) {
      val stored = ColumnDecoder.bytes(pages, rows).slice(from, until)
      if (stored.contains(null)) throw new IllegalArgumentException("a value is missing")
      new Values.Bytes(stored.map(ValueCountReader.inOrder(_, dataType)))
    } else {
      val (stored, present) = ColumnDecoder.longsWithPresence(pages, rows)
      if (!(from until until).forall(present(_))) throw new IllegalArgumentException("a value is missing")
      new Values.Longs(stored.slice(from, until))
    }

  private def leavesOf(footer: ParquetFooter, dataType: DataType): Seq[Int] =
    Seq(
      Seq("column"),
      Seq(ValueCountReader.fieldOf(dataType)),
      MapKey,
      MapValue,
      ListElement).map(footer.leafAt)

  /** The first and the last row of a column, exclusive; its rows are consecutive. */
  private def span(columns: Array[Long], column: Int): (Int, Int) = {
    val from = columns.indexOf(column.toLong)
    if (from < 0) (0, 0)
    else {
      val until = columns.lastIndexOf(column.toLong) + 1
      if ((from until until).exists(columns(_) != column))
        throw new IllegalArgumentException(s"its rows of column $column do not stand together")
      (from, until)
    }
  }
}

private object ValueIndexReader {
  private val MostHash = -1L // as an unsigned number
  private val MapKey = Seq("files_sparse", "key_value", "key")
  private val MapValue = Seq("files_sparse", "key_value", "value")
  private val ListElement = Seq("files_dense", "list", "element")

  /** The entries of a column's lists, row by row. */
  private final class ListEntries(store: ColumnReadStoreImpl, pages: ChunkPages) {
    private val leaf = pages.leaf
    private val reader = store.getColumnReader(leaf)
    private val isInt = leaf.getPrimitiveType.getPrimitiveTypeName == PrimitiveTypeName.INT32
    private var remaining = pages.getTotalValueCount
    private val none = Array.emptyLongArray
    if (leaf.getMaxRepetitionLevel != 1) throw new IllegalArgumentException("its lists are none")

    def next(): Array[Long] = {
      if (remaining == 0) throw new IllegalArgumentException("columns differ in length")
      val level = reader.getCurrentDefinitionLevel
      if (level == leaf.getMaxDefinitionLevel) {
        val entries = Array.newBuilder[Long]
        do entries += entry() while (remaining > 0 && reader.getCurrentRepetitionLevel > 0)
        entries.result()
      } else {
        if (level > 1) throw new IllegalArgumentException("a list has an entry without a value")
        consume()
        none
      }
    }

    private def entry(): Long = {
      if (reader.getCurrentDefinitionLevel != leaf.getMaxDefinitionLevel)
        throw new IllegalArgumentException("a list has an entry without a value")
      val value = if (isInt) reader.getInteger.toLong else reader.getLong
      if (value < 0) throw new IllegalArgumentException(s"a list has the entry $value")
      consume()
      value
    }

    private def consume(): Unit = {
      reader.consume()
      remaining -= 1
    }
  }

  /**
   * Whether the hashes in a row group, from its least one to that of the next group, include one of `hashes`.
   */
  private def mayHaveHash(
      hashes: Array[Long],
      least: Int => Long,
      groups: Seq[Int],
      i: Int): Boolean = {
    val first = least(groups(i))
    val last = if (i + 1 < groups.size) least(groups(i + 1)) else MostHash
    hashes.exists(hash => compareUnsigned(first, hash) <= 0 && compareUnsigned(hash, last) <= 0)
  }

  /** Builds the lists of a row group, value by value. */
  private final class Builder(number: Int) {
    private val starts = Array.newBuilder[Int]
    private val (files, counts) = (Array.newBuilder[Int], Array.newBuilder[Long])
    private var entries = 0

    /** Begins the list of the next value. */
    def next(): Unit = starts += entries

    def add(file: Long, count: Long): Unit = {
      if (file >= number) throw new IllegalArgumentException(s"a value is in file $file of $number")
      files += file.toInt
      counts += count
      entries = Math.addExact(entries, 1)
    }

    def result(values: Values): Postings = {
      starts += entries
      new Postings(values, starts.result(), files.result(), counts.result())
    }
  }
}
