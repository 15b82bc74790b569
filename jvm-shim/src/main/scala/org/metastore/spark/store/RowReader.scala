package org.metastore.spark.store

import scala.collection.JavaConverters._

import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.{PageReader, PageReadStore}
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.schema.MessageType

/** Reads whole rows of objects, lists and maps included: for answers to people, where a row is an object anyway. */
private[store] final class RowReader(objects: ObjectReader) {
  import RowReader._

  /**
   * The rows of some row groups.
   *
   * @param groups row groups, given the footer
   * @param make   makes a value of a row; `None` leaves the row out
   */
  def rows[T](ref: ObjectRef, groups: ParquetFooter => Seq[Int])(make: ObjectRow => Option[T]): IndexedSeq[T] = {
    val footer = objects.footer(ref)
    objects.asDamage(ref) {
      RowGroupMemory.lend(ref.name) { memory =>
        groups(footer).flatMap(group => readGroup(ref, footer, group, memory, make)).toIndexedSeq
      }
    }
  }

  def rows[T](ref: ObjectRef)(make: ObjectRow => T): IndexedSeq[T] =
    rows(ref, _.rowGroups.indices)(row => Some(make(row)))

  private def readGroup[T](
      ref: ObjectRef, footer: ParquetFooter, group: Int, memory: RowGroupMemory, make: ObjectRow => Option[T]): Seq[T] = {
    val schema = footer.schema
    footer.leaves.indices.foreach { leaf =>
      val bytes = if (footer.leaves(leaf).repeated == 0) ValueBytes else ElementBytes
      memory.take(footer.chunk(group, leaf).values * bytes)
    }
    val pages = objects.chunks(ref, footer, group, footer.leaves.indices, memory)
    val count = footer.rowGroups(group).rows
    val records = new ColumnIOFactory().getColumnIO(schema)
      .getRecordReader(new PageStore(pages.values.toSeq, count), new GroupRecordConverter(schema))
    val made = Seq.newBuilder[T]
    var i = 0L
    while (i < count) {
      made ++= make(new ObjectRow(schema, records.read()))
      i += 1
    }
    made.result()
  }
}

private object RowReader {
  private val ValueBytes = 8L
  private val ElementBytes = 48L // of a list: an object each, and all of a row at a time
}

private final class PageStore(chunks: Seq[ChunkPages], rows: Long) extends PageReadStore {
  private val byPath = chunks.map(chunk => chunk.leaf.path -> chunk).toMap

  override def getPageReader(descriptor: ColumnDescriptor): PageReader =
    new LimitedPages(byPath(descriptor.getPath.toSeq), descriptor)
  override def getRowCount: Long = rows
}

/** One row; fields by name, `None` where null. */
private[store] final class ObjectRow(schema: MessageType, row: Group) {

  def long(field: String): Option[Long] = value(field)(i => row.getLong(i, 0))

  def int(field: String): Option[Int] = value(field)(i => row.getInteger(i, 0))

  def double(field: String): Option[Double] = value(field)(i => row.getDouble(i, 0))

  def boolean(field: String): Option[Boolean] = value(field)(i => row.getBoolean(i, 0))

  def text(field: String): Option[String] = value(field)(i => row.getString(i, 0))

  def bytes(field: String): Option[Array[Byte]] = value(field)(i => row.getBinary(i, 0).getBytes)

  def unscaled(field: String): Option[java.math.BigInteger] = bytes(field).map(new java.math.BigInteger(_))

  /** The items of a list, read by `item` from the repeated group's only field; none where the list is null. */
  def list[T](field: String)(item: Group => T): IndexedSeq[T] = repeated(field).map(item)

  /** A map with text keys. */
  def map[T](field: String)(item: Group => T): Map[String, T] =
    repeated(field).map(entry => entry.getString(0, 0) -> item(entry)).toMap

  private def repeated(field: String): IndexedSeq[Group] = value(field) { i =>
    val outer = row.getGroup(i, 0)
    (0 until outer.getFieldRepetitionCount(0)).map(n => outer.getGroup(0, n))
  }.getOrElse(IndexedSeq.empty)

  private def value[T](field: String)(get: Int => T): Option[T] =
    if (!schema.containsField(field)) None
    else {
      val index = schema.getFieldIndex(field)
      if (row.getFieldRepetitionCount(index) == 0) None else Some(get(index))
    }

  override def toString: String = schema.getFields.asScala.map(_.getName).mkString("ObjectRow(", ", ", ")")
}
