package org.metastore.spark.statistics.objects

import scala.collection.JavaConverters._

import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.{PageReader, PageReadStore}
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.schema.MessageType

import org.metastore.spark.contract.Contract

/** Reads whole rows of objects, lists and maps included: for answers to people, where a row is an object anyway. */
private[statistics] final class RowReader(objects: ObjectReader) {
  /** The rows of some row groups. */
  def rows[T](ref: ObjectRef, groups: ParquetFooter => Seq[Int])(make: ObjectRow => Option[T]): IndexedSeq[T] = {
    val footer = objects.footer(ref)
    objects.asDamage(ref) {
      groups(footer).flatMap(group => readGroup(ref, footer, group, make)).toIndexedSeq
    }
  }

  def rows[T](ref: ObjectRef)(make: ObjectRow => T): IndexedSeq[T] =
    rows(ref, _.rowGroups.indices)(row => Some(make(row)))

  private def readGroup[T](
      ref: ObjectRef, footer: ParquetFooter, group: Int, make: ObjectRow => Option[T]): Seq[T] = {
    val schema = footer.schema
    val pages = objects.chunks(ref, footer, group, footer.leaves.indices)
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

private[statistics] final class PageStore(chunks: Seq[ChunkPages], rows: Long) extends PageReadStore {
  private val byPath = chunks.map(chunk => chunk.leaf.getPath.toSeq -> chunk).toMap

  override def getPageReader(descriptor: ColumnDescriptor): PageReader = byPath(descriptor.getPath.toSeq)
  override def getRowCount: Long = rows
}

/** One row; fields by name, `None` where null. */
private[statistics] final class ObjectRow(schema: MessageType, row: Group) {

  def long(field: String): Option[Long] = value(field)(i => row.getLong(i, 0))

  def int(field: String): Option[Int] = value(field)(i => row.getInteger(i, 0))

  def double(field: String): Option[Double] = value(field)(i => row.getDouble(i, 0))

  def boolean(field: String): Option[Boolean] = value(field)(i => row.getBoolean(i, 0))

  def text(field: String): Option[String] = value(field)(i => row.getString(i, 0))

  def bytes(field: String): Option[Array[Byte]] = value(field)(i => row.getBinary(i, 0).getBytes)

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
}

/** The statistics that descriptors compute, each a whole number (contract/statistics.json). */
private[statistics] object ComputedStatistics {
  private val merges = Set("sum", "min", "max")

  /** Their fields. */
  val names: Seq[String] =
    Contract.read("statistics").asScala.filter(one => merges(one.get("merge").asText)).map(_.get("name").asText).toSeq
}

/** Makes the rows of each kind of object (docs/format.md, "Objects"). */
private[statistics] object ObjectRows {

  def dataFile(row: ObjectRow): DataFileRow = DataFileRow(
    row.int("file").get, row.text("path").get, row.long("size").get, row.long("modified"), row.long("rows"),
    row.map("partition")(entry => if (entry.getFieldRepetitionCount(1) == 0) None else Some(entry.getString(1, 0)))
      .collect { case (name, Some(value)) => name -> value },
    withFile(row, "frequencies"), withFile(row, "histograms"))

  private def detail(row: ObjectRow, kind: String): Option[ObjectRef] = row.text(s"${kind}_name").map { name =>
    val ref = ObjectRef(
      name, row.long(s"${kind}_length").get, row.text(s"${kind}_sha256").get, rows = ObjectRef.AnyRows,
      row.long(s"${kind}_footer_length").orElse(row.int(s"${kind}_footer_length").map(_.toLong)).get.toInt,
      row.text(s"${kind}_footer_sha256").get)
    ManifestReader.requireName(ref, kind)
    ref
  }

  private def withFile(row: ObjectRow, kind: String): Option[DetailRef] =
    detail(row, kind).flatMap(ref => row.int(s"${kind}_file").map(DetailRef(ref, _)))

  def value(row: ObjectRow): Option[ValueCount] =
    row.long("value_long").orElse[Any](row.double("value_double")).orElse(row.bytes("value_binary"))
      .map(ValueCount(_, row.long("frequency").getOrElse(0), row.long("error").getOrElse(0), filesOf(row)))

  private def filesOf(row: ObjectRow): Map[Int, Long] = {
    val dense = row.list("files_dense")(_.getLong(0, 0)).zipWithIndex.collect { case (count, file) if count > 0 => file -> count }
    (row.list("files_sparse")(entry => entry.getInteger(0, 0) -> entry.getLong(1, 0)) ++ dense).toMap
  }

  def histogram(row: ObjectRow): HistogramRow = HistogramRow(
    row.text("kind").getOrElse(""), typedList(row, "edges"), row.list("counts")(_.getLong(0, 0)), row.list("distincts")(_.getLong(0, 0)),
    row.list("errors")(_.getLong(0, 0)))

  def tableFile(row: ObjectRow): TableFileRow = TableFileRow(
    row.text("block"), row.int("file"), row.text("path").get, row.long("size").get, row.long("rows"), row.text("deletes"),
    row.long("deleted_rows"), row.long("modified"))

  def summary(row: ObjectRow): SummaryRow = SummaryRow(
    column = row.int("column").get,
    file = row.int("file"),
    rows = row.long("rows"),
    nulls = row.long("nulls"),
    nans = row.long("nans"),
    lo = bound(row, "lo"),
    hi = bound(row, "hi"),
    loExact = row.boolean("lo_exact").contains(true),
    hiExact = row.boolean("hi_exact").contains(true),
    distinct = row.long("distinct"),
    distinctError = row.double("distinct_error"),
    sumExact = row.bytes("sum_exact").map(bytes => new java.math.BigDecimal(new java.math.BigInteger(bytes))),
    sum = row.double("sum"),
    mean = row.double("mean"),
    m2 = row.double("m2"),
    avgLen = row.double("avg_len"),
    numbers = ComputedStatistics.names.flatMap(name => row.long(name).map(name -> _)).toMap,
    trues = row.long("trues"),
    compressedBytes = row.long("compressed_bytes"),
    uncompressedBytes = row.long("uncompressed_bytes"),
    frequencies = row.text("frequencies"),
    frequenciesFloor = row.long("frequencies_floor"),
    percentiles = typedList(row, "percentiles"),
    extra = row.map("extra")(entry => entry.getBinary(1, 0).getBytes),
    files = row.int("files").getOrElse(1),
    singles = row.long("singles"),
    frequenciesAlgorithm = row.text("frequencies_algorithm"))

  private def bound(row: ObjectRow, side: String): Option[Any] =
    row.long(s"${side}_long").orElse[Any](row.double(s"${side}_double")).orElse(row.bytes(s"${side}_binary"))

  private def typedList(row: ObjectRow, field: String): IndexedSeq[Any] = {
    def of(encoding: String)(item: Group => Any): IndexedSeq[Any] = row.list(s"${field}_$encoding")(item)
    Seq(
      of("long")(_.getLong(0, 0)), of("double")(_.getDouble(0, 0)), of("binary")(_.getBinary(0, 0).getBytes))
      .find(_.nonEmpty).getOrElse(IndexedSeq.empty)
  }
}

/** What tells a data file from all others of its table: docs/format.md, "Identity". */
final case class FileKey(path: String, size: Long, modified: Option[Long])

/** A row of `files`: a data file of a block. Column names as in docs/format.md. */
final case class DataFileRow(
    file: Int, path: String, size: Long, modified: Option[Long], rows: Option[Long], partition: Map[String, String],
    frequencies: Option[DetailRef] = None, histograms: Option[DetailRef] = None) {

  def key: FileKey = FileKey(path, size, modified)
}

/** A detail object and a data file's ordinal in it. */
final case class DetailRef(ref: ObjectRef, file: Int)

/**
 * A value of a column and how often it occurs; with `error` rows more, at most. In the column's encoding, as in [[SummaryRow]].
 */
final case class ValueCount(value: Any, frequency: Long, error: Long, files: Map[Int, Long])

/** A histogram as it is stored. Lists are empty where null. */
final case class HistogramRow(
    kind: String, edges: IndexedSeq[Any], counts: IndexedSeq[Long], distincts: IndexedSeq[Long],
    errors: IndexedSeq[Long] = IndexedSeq.empty)

/** A row of `table-files`: a live data file of a snapshot. `deletedRows = None`: unknown. */
final case class TableFileRow(
    block: Option[String], file: Option[Int], path: String, size: Long, rows: Option[Long], deletes: Option[String],
    deletedRows: Option[Long], modified: Option[Long]) {

  def key: FileKey = FileKey(path, size, modified)

  /** Rows that nothing deletes; `None` where not known. */
  def liveRows: Option[Long] = if (deletes.isEmpty) rows else for (all <- rows; deleted <- deletedRows) yield all - deleted
}

/**
 * A row of `summary` or `table-summary`: everything known of one column in one data file, or in a table. `lo`, `hi` and
 * `percentiles` are values in the column's encoding: `Long`, `Double` or `Array[Byte]`; `CatalystValue` converts them to
 * Catalyst's.
 *
 * @param file data file in the block; `None` at table level
 * @param numbers statistics that the contract says are computed one by one, by their names
 */
final case class SummaryRow(
    column: Int, file: Option[Int], rows: Option[Long], nulls: Option[Long], nans: Option[Long], lo: Option[Any], hi: Option[Any],
    loExact: Boolean, hiExact: Boolean, distinct: Option[Long], distinctError: Option[Double],
    sumExact: Option[java.math.BigDecimal], sum: Option[Double], mean: Option[Double], m2: Option[Double],
    avgLen: Option[Double], numbers: Map[String, Long], trues: Option[Long], compressedBytes: Option[Long],
    uncompressedBytes: Option[Long], frequencies: Option[String], frequenciesFloor: Option[Long],
    percentiles: IndexedSeq[Any], extra: Map[String, Array[Byte]], files: Int, singles: Option[Long] = None,
    frequenciesAlgorithm: Option[String] = None)

object SummaryRow {

  /** What is known of a column in a table without rows. */
  def ofNoRows(column: Int): SummaryRow = SummaryRow(
    column, file = None, rows = Some(0), nulls = Some(0), nans = Some(0), lo = None, hi = None, loExact = true, hiExact = true,
    distinct = Some(0), distinctError = None, sumExact = None, sum = None, mean = None, m2 = None, avgLen = None, numbers = Map.empty,
    trues = None, compressedBytes = None, uncompressedBytes = None, frequencies = Some("complete"), frequenciesFloor = None,
    percentiles = IndexedSeq.empty, extra = Map.empty, files = 0)
}
