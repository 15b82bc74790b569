package org.metastore.spark.store

import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.spark.sql.types.DataType

/** Reads where the values of a column live: `table-frequencies` of a column in a snapshot's distribution. */
private[store] final class PlacesReader(objects: ObjectReader) {
  import PlacesReader._

  /**
   * The values of a column in some objects, together all that it has.
   *
   * @param files how many data files the snapshot lists
   */
  def read(refs: Seq[ObjectRef], column: Int, dataType: DataType, files: Int): ValuePlaces = {
    val built = new Builder(files)
    for (ref <- refs; group <- objects.footer(ref).groupsOf(Set(column))) objects.guarded(ref) {
      RowGroupMemory.lend(ref.name)(readGroup(ref, group, column, dataType, _, built))
    }
    built.result()
  }

  /** How many entries and bytes are read for that. */
  def size(refs: Seq[ObjectRef], column: Int, dataType: DataType): ReadSize = {
    val sizes = for (ref <- refs; footer = objects.footer(ref); group <- footer.groupsOf(Set(column))) yield {
      val chunks = leavesOf(footer, dataType).map(footer.chunk(group, _))
      ReadSize(chunks.map(_.values).sum, chunks.map(_.length).sum)
    }
    ReadSize(sizes.map(_.rows).sum, sizes.map(_.bytes).sum)
  }

  /** Those of some values that are among the points, compared as they are stored. */
  def confirmed(places: ValuePlaces, values: Array[Int], dataType: DataType, points: Points.Bytes): Array[Int] =
    places.parts.flatMap { part =>
      val mine = values.filter(value => value >= part.first && value < part.first + part.length)
      if (mine.isEmpty) Nil
      else SummaryGroup.read(objects, part.ref, part.group, Seq(ValueReader.fieldOf(dataType))) { rows =>
        val stored = rows.bytes(ValueReader.fieldOf(dataType))
        mine.filter { value =>
          val bytes = stored(part.row + value - part.first)
          bytes != null && points.has(ValueReader.inOrder(bytes, dataType))
        }.toSeq
      }
    }.toArray

  private def readGroup(
      ref: ObjectRef, group: Int, column: Int, dataType: DataType, memory: RowGroupMemory, built: Builder): Unit = {
    val footer = objects.footer(ref)
    val rows = footer.rowGroups(group).rows.toInt
    val leaves = leavesOf(footer, dataType)
    val pages = objects.chunks(ref, footer, group, leaves, memory)
    val (from, until) = span(FlatDecoder.longs(pages(leaves.head), rows, -1), column)
    val keys = keysOf(pages(leaves(1)), rows, dataType, memory)
    val lists = leaves.drop(2).map(pages)
    memory.take(lists.map(_.getTotalValueCount).sum * EntryBytes)
    val store = new ColumnReadStoreImpl(
      new VerifiedRowGroup(lists, rows), new GroupRecordConverter(footer.schema).getRootConverter,
      footer.schema, "")
    val entries = lists.map(new Entries(store, footer, _))
    built.begin(ValuePlaces.Part(ref, group, built.length, from, until - from))
    for (row <- 0 until rows) {
      val wanted = row >= from && row < until
      if (wanted) built.value(keys(row))
      val (files, counts, everywhere) = (entries.head.next(), entries(1).next(), entries(2).next())
      if (files.length != counts.length) throw new IllegalArgumentException("a map has other keys than values")
      if (wanted) {
        files.indices.foreach(i => built.place(files(i), counts(i)))
        everywhere.indices.filter(everywhere(_) != 0).foreach(i => built.place(i, everywhere(i)))
      }
    }
  }

  private def keysOf(pages: ChunkPages, rows: Int, dataType: DataType, memory: RowGroupMemory): Array[Long] =
    if (ServedType.encoding(dataType).contains(Encoding.BinaryValues)) {
      val hash = new ValueHash(dataType)
      val stored = FlatDecoder.bytes(pages, rows)
      memory.take(rows * 8L)
      stored.map(value => if (value == null) 0L else hash.ofBytes(ValueReader.inOrder(value, dataType)))
    } else FlatDecoder.longs(pages, rows, 0)

  private def leavesOf(footer: VerifiedFooter, dataType: DataType): Seq[Int] =
    Seq(Seq("column"), Seq(ValueReader.fieldOf(dataType)), MapKey, MapValue, ListElement).map(footer.leafAt)

  /** Where the rows of a column are: they stand together. */
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

private object PlacesReader {
  private val EntryBytes = 48L // decoded, and in arrays that grow
  private val MapKey = Seq("files_sparse", "key_value", "key")
  private val MapValue = Seq("files_sparse", "key_value", "value")
  private val ListElement = Seq("files_dense", "list", "element")

  /** The entries of a column's lists, row by row. */
  private final class Entries(store: ColumnReadStoreImpl, footer: VerifiedFooter, pages: ChunkPages) {
    private val leaf = pages.leaf
    private val reader = store.getColumnReader(footer.schema.getColumnDescription(leaf.path.toArray))
    private val isInt = leaf.physical == org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT32
    private var left = pages.getTotalValueCount
    private val none = Array.emptyLongArray
    if (leaf.repeated != 1) throw new IllegalArgumentException("its lists are none")

    def next(): Array[Long] = {
      if (left == 0) throw new IllegalArgumentException("columns differ in length")
      val level = reader.getCurrentDefinitionLevel
      if (level == leaf.nullable) {
        val found = Array.newBuilder[Long]
        do found += entry() while (left > 0 && reader.getCurrentRepetitionLevel > 0)
        found.result()
      } else {
        if (level > 1) throw new IllegalArgumentException("a list has an entry without a value")
        consume()
        none
      }
    }

    private def entry(): Long = {
      if (reader.getCurrentDefinitionLevel != leaf.nullable) throw new IllegalArgumentException("a list has an entry without a value")
      val value = if (isInt) reader.getInteger.toLong else reader.getLong
      if (value < 0) throw new IllegalArgumentException(s"a list has the entry $value")
      consume()
      value
    }

    private def consume(): Unit = {
      reader.consume()
      left -= 1
    }
  }

  /** Puts the row groups together. */
  private final class Builder(number: Int) {
    private val parts = Seq.newBuilder[ValuePlaces.Part]
    private val (keys, starts) = (Array.newBuilder[Long], Array.newBuilder[Int])
    private val (files, counts) = (Array.newBuilder[Int], Array.newBuilder[Long])
    private var entries = 0
    var length = 0

    def begin(part: ValuePlaces.Part): Unit = parts += part

    def value(key: Long): Unit = {
      keys += key
      starts += entries
      length += 1
    }

    def place(file: Long, count: Long): Unit = {
      if (file >= number) throw new IllegalArgumentException(s"a value is in file $file of $number")
      files += file.toInt
      counts += count
      entries = Math.addExact(entries, 1)
    }

    def result(): ValuePlaces = {
      starts += entries
      new ValuePlaces(keys.result(), starts.result(), files.result(), counts.result(), parts.result(), number)
    }
  }
}
