package org.metastore.spark.statistics.objects

import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.{PageReader, PageReadStore}
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.schema.{LogicalTypeAnnotation, MessageType, PrimitiveType}
import org.apache.parquet.schema.LogicalTypeAnnotation.{
  DecimalLogicalTypeAnnotation, StringLogicalTypeAnnotation
}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

import org.metastore.spark.reason.Indexed

/**
 * Reads whole rows of objects, lists and maps included: for answers to people, where a row is an object
 * anyway.
 */
private[statistics] final class RowReader(objects: ObjectReader) {

  /** The rows of some row groups that pass a test, each as `make` makes it. */
  def rows[T](
      ref: ObjectRef,
      groups: ParquetFooter => Seq[Int],
      isWanted: ObjectRow => Boolean)(make: ObjectRow => T): IndexedSeq[T] = {
    val footer = objects.footer(ref)
    objects.asDamage(ref) {
      val all = groups(footer).iterator.flatMap(readGroup(ref, footer, _))
      all.filter(isWanted).map(make).toIndexedSeq
    }
  }

  def rows[T](ref: ObjectRef)(make: ObjectRow => T): IndexedSeq[T] =
    rows(ref, _.rowGroups.indices, _ => true)(make)

  private def readGroup(ref: ObjectRef, footer: ParquetFooter, group: Int): Iterator[ObjectRow] = {
    val schema = footer.schema
    val pages = objects.chunks(ref, footer, group, footer.leaves.indices)
    val count = footer.rowGroups(group).rows
    val records = new ColumnIOFactory().getColumnIO(schema)
      .getRecordReader(new PageStore(pages.values.toSeq, count), new GroupRecordConverter(schema))
    Iterator.range(0, Math.toIntExact(count)).map(_ => new ObjectRow(schema, records.read()))
  }
}

private[statistics] final class PageStore(chunks: Seq[ChunkPages], rows: Long) extends PageReadStore {
  private val byPath = Indexed.by(chunks)(_.leaf.getPath.toSeq)

  override def getPageReader(descriptor: ColumnDescriptor): PageReader = byPath(descriptor.getPath.toSeq)
  override def getRowCount: Long = rows
}

/** A row, read by field name; `None` is null. */
private[statistics] final class ObjectRow(schema: MessageType, row: Group) {

  def long(field: String): Option[Long] = value(field)(i => row.getLong(i, 0))

  def int(field: String): Option[Int] = value(field)(i => row.getInteger(i, 0))

  def double(field: String): Option[Double] = value(field)(i => row.getDouble(i, 0))

  def text(field: String): Option[String] = value(field)(i => row.getString(i, 0))

  def bytes(field: String): Option[Array[Byte]] = value(field)(i => row.getBinary(i, 0).getBytes)

  /** The value in the column's encoding, from the typed field that has it. */
  def value: Option[Any] =
    long("value_long").orElse[Any](double("value_double")).orElse(bytes("value_binary"))

  /**
   * The items of a list, read by `item` from the repeated group's only field; none where the list is null.
   */
  def list[T](field: String)(item: Group => T): IndexedSeq[T] = repeated(field).map(item)

  /** A map with text keys. */
  def map[T](field: String)(item: Group => T): Map[String, T] =
    Indexed.entries(repeated(field))(entry => entry.getString(0, 0) -> item(entry))

  /** All fields by their names: numbers, texts, bytes, lists and maps of them; none where null or empty. */
  def fields: String => Option[Any] = {
    val stored = schema // so that the function refers to the schema and the values, not to the row
    val values = Array.tabulate(stored.getFieldCount)(read(row, _))
    name => if (stored.containsField(name)) Option(values(stored.getFieldIndex(name))) else None
  }

  private def read(group: Group, field: Int): Any =
    if (group.getFieldRepetitionCount(field) == 0) null
    else group.getType.getType(field) match {
      case primitive: PrimitiveType => read(group, field, primitive)
      case nested =>
        val entries = entriesOf(group.getGroup(field, 0))
        if (entries.isEmpty) null
        else if (nested.getLogicalTypeAnnotation == LogicalTypeAnnotation.mapType)
          Indexed.entries(entries)(e => read(e, 0) -> read(e, 1))
        else entries.map(read(_, 0))
    }

  private def read(group: Group, field: Int, stored: PrimitiveType): Any = stored.getPrimitiveTypeName match {
    case PrimitiveTypeName.INT32 => group.getInteger(field, 0)
    case PrimitiveTypeName.INT64 => group.getLong(field, 0)
    case PrimitiveTypeName.DOUBLE => group.getDouble(field, 0)
    case PrimitiveTypeName.BOOLEAN => group.getBoolean(field, 0)
    case _ => stored.getLogicalTypeAnnotation match {
        case _: StringLogicalTypeAnnotation => group.getString(field, 0)
        case decimal: DecimalLogicalTypeAnnotation =>
          new java.math.BigDecimal(
            new java.math.BigInteger(group.getBinary(field, 0).getBytes),
            decimal.getScale)
        case _ => group.getBinary(field, 0).getBytes
      }
  }

  private def repeated(field: String): IndexedSeq[Group] =
    if (has(field)) entriesOf(row.getGroup(schema.getFieldIndex(field), 0)) else IndexedSeq.empty

  private def entriesOf(outer: Group): IndexedSeq[Group] =
    IndexedSeq.tabulate(outer.getFieldRepetitionCount(0))(outer.getGroup(0, _))

  private def value[T](field: String)(get: Int => T): Option[T] =
    if (has(field)) Some(get(schema.getFieldIndex(field))) else None

  private def has(field: String): Boolean =
    schema.containsField(field) && row.getFieldRepetitionCount(schema.getFieldIndex(field)) > 0
}

/** Makes the rows of each kind of object (docs/format.md, "Objects"). */
private[statistics] object ObjectRows {

  def dataFile(row: ObjectRow): DataFileRow = DataFileRow(
    row.int("file").get,
    row.text("path").get,
    row.long("size").get,
    row.long("modified"),
    row.long("rows"),
    partition(row),
    detail(row, "frequencies"),
    detail(row, "histograms"))

  /** The partition values that are not null. */
  private def partition(row: ObjectRow): Map[String, String] = {
    val values = row.map("partition")(entry =>
      if (entry.getFieldRepetitionCount(1) == 0) null
      else entry.getString(1, 0))
    values.filter { case (_, value) => value != null }
  }

  private def detail(row: ObjectRow, kind: String): Option[DetailRef] =
    for {
      name <- row.text(s"${kind}_name")
      ref = detailObject(row, kind, name)
      file <- row.int(s"${kind}_file")
    } yield DetailRef(ref, file)

  private def detailObject(row: ObjectRow, kind: String, name: String): ObjectRef = {
    val ref = ObjectRef(
      name,
      row.long(s"${kind}_length").get,
      row.text(s"${kind}_sha256").get,
      rows = ObjectRef.AnyRows,
      row.long(s"${kind}_footer_length").get.toInt,
      row.text(s"${kind}_footer_sha256").get)
    ObjectRef.requireName(ref, kind)
    ref
  }

  def value(row: ObjectRow): Option[ValueCount] = {
    def count(field: String) = row.long(field).getOrElse(0L)
    row.value.map(ValueCount(_, count("frequency"), count("error"), filesOf(row)))
  }

  private def filesOf(row: ObjectRow): Map[Int, Long] = {
    val counts = Map.newBuilder[Int, Long]
    counts ++= row.list("files_sparse")(entry => entry.getInteger(0, 0) -> entry.getLong(1, 0))
    val dense = row.list("files_dense")(_.getLong(0, 0))
    for (file <- dense.indices if dense(file) > 0) counts += file -> dense(file)
    counts.result()
  }

  def histogram(row: ObjectRow): HistogramRow = HistogramRow(
    row.text("kind").getOrElse(""),
    typedList(row, "edges"),
    row.list("counts")(_.getLong(0, 0)),
    row.list("distincts")(_.getLong(0, 0)),
    row.list("errors")(_.getLong(0, 0)))

  def tableFile(row: ObjectRow): TableFileRow = TableFileRow(
    row.text("block"),
    row.int("file"),
    row.text("path").get,
    row.long("size").get,
    row.long("rows"),
    row.text("deletes"),
    row.long("deleted_rows"),
    row.long("modified"))

  def summary(row: ObjectRow): SummaryRow = new SummaryRow(row.fields)

  private def typedList(row: ObjectRow, field: String): IndexedSeq[Any] = {
    val longs = row.list[Any](s"${field}_long")(_.getLong(0, 0))
    val doubles = row.list[Any](s"${field}_double")(_.getDouble(0, 0))
    val binaries = row.list[Any](s"${field}_binary")(_.getBinary(0, 0).getBytes)
    if (longs.nonEmpty) longs else if (doubles.nonEmpty) doubles else binaries
  }
}

/** The identity of a data file within its table: docs/format.md, "Identity". */
final case class FileKey(path: String, size: Long, modified: Option[Long])

/** A row of `files`: a data file of a block. Column names as in docs/format.md. */
final case class DataFileRow(
    file: Int,
    path: String,
    size: Long,
    modified: Option[Long],
    rows: Option[Long],
    partition: Map[String, String],
    frequencies: Option[DetailRef] = None,
    histograms: Option[DetailRef] = None) {

  def key: FileKey = FileKey(path, size, modified)
}

/** A detail object and a data file's ordinal in it. */
final case class DetailRef(ref: ObjectRef, file: Int)

/**
 * A value of a column and how often it occurs; with `error` rows more, at most. In the column's encoding, as
 * in [[SummaryRow]].
 */
final case class ValueCount(value: Any, frequency: Long, error: Long, files: Map[Int, Long])

/** A stored histogram. A null list is empty. */
final case class HistogramRow(
    kind: String,
    edges: IndexedSeq[Any],
    counts: IndexedSeq[Long],
    distincts: IndexedSeq[Long],
    errors: IndexedSeq[Long] = IndexedSeq.empty)

/** A row of `table-files`: a live data file of a snapshot. `deletedRows = None`: unknown. */
final case class TableFileRow(
    block: Option[String],
    file: Option[Int],
    path: String,
    size: Long,
    rows: Option[Long],
    deletes: Option[String],
    deletedRows: Option[Long],
    modified: Option[Long]) {

  def key: FileKey = FileKey(path, size, modified)

  /** Rows that nothing deletes; `None` where not known. */
  def liveRows: Option[Long] =
    if (deletes.isEmpty) rows
    else for (all <- rows; deleted <- deletedRows) yield all - deleted
}

/**
 * A row of `summary` or `table-summary`: everything known of one column in one data file, or in a table, by
 * the names of its fields. `lo`, `hi` and `percentiles` are values in the column's encoding: `Long`, `Double`
 * or `Array[Byte]`; `CatalystValue` converts them to Catalyst's.
 */
final class SummaryRow(stored: String => Option[Any]) {
  val column: Int = get[Int]("column").get

  /** The data file in the block; `None` at table level. */
  def file: Option[Int] = get("file")

  def rows: Option[Long] = get("rows")
  def nulls: Option[Long] = get("nulls")
  def nans: Option[Long] = get("nans")

  /** The numbers of values that are -Infinity and Infinity; `None` if they were not counted. */
  def infinities: Option[(Long, Long)] =
    for {
      below <- get[Long]("negative_infinities")
      above <- get[Long]("positive_infinities")
    } yield (below, above)

  /** The number of values without null and NaN. */
  def numbers: Option[Long] = for (all <- rows; missing <- nulls) yield all - missing - nans.getOrElse(0L)

  def lo: Option[Any] = encoded("lo")
  def hi: Option[Any] = encoded("hi")
  def loExact: Boolean = get[Boolean]("lo_exact").contains(true)
  def hiExact: Boolean = get[Boolean]("hi_exact").contains(true)
  def distinct: Option[Long] = get("distinct")
  def frequencies: Option[String] = get("frequencies")
  def percentiles: IndexedSeq[Any] =
    encoded("percentiles").fold(IndexedSeq.empty[Any])(_.asInstanceOf[IndexedSeq[Any]])
  def extra: Map[String, Array[Byte]] = get[Map[String, Array[Byte]]]("extra").getOrElse(Map.empty)
  def files: Int = get[Int]("files").getOrElse(1)

  /** A field as it is stored: contract/statistics.json has those that statistics compute. */
  def get[T](field: String): Option[T] = stored(field).map(_.asInstanceOf[T])

  /** The row with these percentiles, at least one. */
  def withPercentiles(values: IndexedSeq[Any]): SummaryRow = {
    val field = s"percentiles_${SummaryRow.encodingOf(values.head)}"
    new SummaryRow(name => if (name == field) Some(values) else stored(name))
  }

  private def encoded(field: String): Option[Any] =
    stored(s"${field}_long").orElse(stored(s"${field}_double")).orElse(stored(s"${field}_binary"))
}

object SummaryRow {

  /** The suffix of fields for values of this kind. */
  def encodingOf(value: Any): String = value match {
    case _: Long => "long"
    case _: Double => "double"
    case _ => "binary"
  }

  /** The row of an unknown column in no data file. */
  val Unknown: SummaryRow = new SummaryRow(Map[String, Any]("column" -> -1, "files" -> 0).get)

  /** The row of a column in a table without rows. */
  def withoutRows(column: Int): SummaryRow = new SummaryRow(Map[String, Any](
    "column" -> column,
    "rows" -> 0L,
    "nulls" -> 0L,
    "nans" -> 0L,
    "lo_exact" -> true,
    "hi_exact" -> true,
    "distinct" -> 0L,
    "frequencies" -> "complete",
    "files" -> 0).get)
}
