package org.metastore.spark.statistics.values

import java.util.Arrays

import scala.collection.mutable

import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter

import org.apache.spark.sql.types.{DataType, DecimalType}

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.columns.{ColumnValues, CountedValues, TypePromotion, ValueEvidence}
import org.metastore.spark.statistics.objects.{
  Block, DecimalBytes, Encoding, Fill, ObjectReader, ObjectRef, ParquetFooter, Values, RowGroup,
  UnsignedOrder, ValueHash
}

/** Reads lists of values and bloom filters of a column. Files with contradictory counts have no list. */
private[statistics] final class ValueCountReader(objects: ObjectReader) {
  import ValueCountReader._

  /**
   * The number of values that are not NULL in each data file of a block; -1 if not all of them are listed.
   */
  def listedValueCounts(block: Block, column: Int, summary: ObjectRef): CacheEntry[Array[Long]] =
    CacheEntry[Array[Long]](
      key("listed", summary, s":$column"),
      _.length * 8L)(readCounts(summary, column, filesOf(block)))

  /** The objects with the details of a kind. */
  def details(block: Block, kind: String): CacheEntry[DetailObjects] =
    CacheEntry[DetailObjects](key(kind, block.files), _.weight)(DetailObjects.read(objects, block, kind))

  def footer(ref: ObjectRef): CacheEntry[ParquetFooter] = objects.cachedFooter(ref)

  /** The lists of a column in an object, by the ordinal of the data file. */
  def lists(ref: ObjectRef, column: Int, dataType: DataType, counted: Boolean): CacheEntry[ValueCountLists] =
    CacheEntry[ValueCountLists](key(if (counted) "counts" else "lists", ref, s":$column"), _.weight)(
      readLists(ref, column, dataType, counted))

  /** The bloom filters of a column in an object, by the ordinal of the data file. */
  def blooms(ref: ObjectRef, column: Int): CacheEntry[ValueCountLists] =
    CacheEntry[ValueCountLists](key("blooms", ref, s":$column"), _.weight)(readBlooms(ref, column))

  /** The number of rows and bytes to read for the lists of a column. */
  def sizeOfLists(footer: ParquetFooter, column: Int, dataType: DataType): ReadSize =
    sizeOf(footer, column, fieldOf(dataType))

  def sizeOfBlooms(footer: ParquetFooter, column: Int): ReadSize = sizeOf(footer, column, Bloom)

  private def sizeOf(footer: ParquetFooter, column: Int, field: String): ReadSize =
    if (!footer.has(field)) ReadSize(0, 0)
    else {
      val groups = footer.groupsOf(Set(column))
      ReadSize(
        groups.map(footer.rowGroups(_).rows).sum,
        groups.map(footer.chunk(_, footer.leaf(field)).length).sum)
    }

  private def filesOf(block: Block): Int = Math.toIntExact(block.files.rows)

  private def readCounts(summary: ObjectRef, column: Int, files: Int): Array[Long] = {
    val out = Fill.longs(files, -1)
    for (group <- objects.footer(summary).groupsOf(Set(column)))
      RowGroup.read(objects, summary, group, CountFields) { rows =>
        for (span <- rows.spans(files).get(column)) {
          val kinds = span.scatter(rows.bytes("frequencies"))
          val counts = span.scatter(rows.longs("rows", -1), -1)
          val nulls = span.scatter(rows.longs("nulls", -1), -1)
          for (file <- kinds.indices if Arrays.equals(kinds(file), Complete) && nulls(file) >= 0)
            out(file) = counts(file) - nulls(file)
        }
      }
    out
  }

  private def readLists(
      ref: ObjectRef,
      column: Int,
      dataType: DataType,
      counted: Boolean): ValueCountLists = {
    val field = fieldOf(dataType)
    val lists = mutable.HashMap.empty[Int, ListBuilder]
    val fields = Seq("column", "file", field, "frequency")
    for (group <- objects.footer(ref).groupsOf(Set(column)))
      RowGroup.read(objects, ref, group, fields) { rows =>
        val (files, frequencies) = (rows.longs("file", -1), rows.longs("frequency", 0))
        val builder =
          (file: Long) => lists.getOrElseUpdate(Math.toIntExact(file), ListBuilder(dataType, counted))
        val add: (Int, Int) => Unit =
          if (field == Bytes) {
            val values = rows.bytes(field)
            (from, until) => builder(files(from)).add(values, from, until)
          } else {
            val values = rows.longs(field, 0)
            (from, until) => builder(files(from)).add(values, from, until)
          }
        for ((from, until) <- runs(rows.longs("column", -1), files, column)) {
          add(from, until)
          builder(files(from)).count(frequencies.slice(from, until))
        }
      }
    ValueCountLists.from(for ((file, list) <- lists) yield (file, list.result(), list.total))
  }

  /** The number of rows with a value, by the ordinals of the data files in an object whose lists have it. */
  def frequencies(ref: ObjectRef, column: Int, dataType: DataType, point: Values): Map[Int, Long] = {
    val field = fieldOf(dataType)
    val fields = Seq("column", "file", field, "frequency")
    val frequencies = Map.newBuilder[Int, Long]
    for (group <- objects.footer(ref).groupsOf(Set(column)))
      RowGroup.read(objects, ref, group, fields) { rows =>
        val columns = rows.longs("column", -1)
        val files = rows.longs("file", -1)
        val counts = rows.longs("frequency", 0)
        val isPoint: Int => Boolean = point match {
          case _: Values.Longs =>
            val values = Values.Longs(rows.longs(field, 0))
            values.isIn(point, _)
          case _: Values.Bytes =>
            val values = Values.Bytes(rows.bytes(field).map(inOrder(_, dataType)))
            i => values.array(i) != null && values.isIn(point, i)
        }
        for (i <- columns.indices if columns(i) == column && isPoint(i))
          frequencies += files(i).toInt -> counts(i)
      }
    frequencies.result()
  }

  private def readBlooms(ref: ObjectRef, column: Int): ValueCountLists = {
    val footer = objects.footer(ref)
    val groups = if (footer.has(Bloom)) footer.groupsOf(Set(column)) else Nil
    val filters = groups.flatMap(RowGroup.read(objects, ref, _, Seq("column", "file", Bloom)) { rows =>
      val columns = rows.longs("column", -1)
      val files = rows.longs("file", -1)
      val bits = rows.bytes(Bloom)
      val indices = columns.indices.filter(i => columns(i) == column && isBloom(bits(i)))
      indices.map(i => (Math.toIntExact(files(i)), new FileValues.Bloom(bits(i)), -1L))
    })
    ValueCountLists.from(filters)
  }
}

private[statistics] object ValueCountReader {
  private val Bloom = "bloom"
  private val Bytes = "value_binary"
  private val CountFields = Seq("column", "file", "rows", "nulls", "frequencies")
  private val Complete = "complete".getBytes

  private def key(kind: String, ref: ObjectRef, suffix: String = ""): String =
    s"$kind:${ref.name}:${ref.footerSha256}$suffix"

  /** The column of lists that holds values of a type. */
  def fieldOf(dataType: DataType): String = TypePromotion.encoding(dataType) match {
    case Some(Encoding.BinaryValues) => Bytes
    case Some(Encoding.DoubleValues) => "value_double"
    case _ => "value_long"
  }

  /** Stored bytes in the order of bounds. */
  def inOrder(stored: Array[Byte], dataType: DataType): Array[Byte] =
    if (dataType.isInstanceOf[DecimalType]) DecimalBytes.ordered(stored)
    else stored

  private def isBloom(bits: Array[Byte]): Boolean =
    bits != null && bits.length >= BlockSplitBloomFilter.LOWER_BOUND_BYTES && Integer.bitCount(
      bits.length) == 1

  /** The runs of consecutive rows of the column with one data file. */
  private def runs(columns: Array[Long], files: Array[Long], column: Int): Seq[(Int, Int)] = {
    val spans = Seq.newBuilder[(Int, Int)]
    var from = 0
    while (from < columns.length) {
      var until = from + 1
      while (until < columns.length && columns(until) == columns(from) && files(until) == files(from))
        until += 1
      if (columns(from) == column) spans += from -> until
      from = until
    }
    spans.result()
  }
}

/** The rows and bytes that a read of an object takes. */
private[statistics] final case class ReadSize(rows: Long, bytes: Long)

/** The values of one column in the data files of an object, by their ordinals there. */
private[statistics] final class ValueCountLists(values: Array[FileValues], totals: Array[Long]) {

  /** The values of a data file; None if there are none, or if they are not of `total` rows. */
  def read(file: Int, total: Long): Option[FileValues] =
    if (file < values.length && totals(file) == total) Option(values(file)) else None

  def weight: Long = values.iterator.map(list => 16L + (if (list == null) 0 else list.weight)).sum
}

private[statistics] object ValueCountLists {

  /** @param lists ordinal, values and number of rows of each file */
  def from(lists: Iterable[(Int, FileValues, Long)]): ValueCountLists = {
    val length = if (lists.isEmpty) 0 else lists.map(_._1).max + 1
    val values = new Array[FileValues](length)
    val totals = new Array[Long](length)
    for ((file, list, total) <- lists) {
      values(file) = list
      totals(file) = total
    }
    new ValueCountLists(values, totals)
  }
}

/** Builds the list of one data file from its parts. */
private sealed abstract class ListBuilder(counted: Boolean) {
  private val frequencies = Array.newBuilder[Long]
  var total = 0L

  def add(values: Array[Long], from: Int, until: Int): Unit =
    throw new IllegalArgumentException("its values are integers")

  def add(values: Array[Array[Byte]], from: Int, until: Int): Unit =
    throw new IllegalArgumentException("its values are bytes")

  /** Adds the number of rows for each of the values that were added last. */
  final def count(rows: Array[Long]): Unit = {
    total += rows.sum
    if (counted) frequencies ++= rows
  }

  final def result(): FileValues =
    if (counted) new FileValues.Counted(CountedValues(values(), frequencies.result()))
    else forLookUps()

  /** The values in the order in which they were added. */
  protected def values(): Values

  /** The values for look-ups. */
  protected def forLookUps(): FileValues
}

private object ListBuilder {
  def apply(dataType: DataType, counted: Boolean): ListBuilder =
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues)) new BytesBuilder(dataType, counted)
    else new LongsBuilder(counted)

  private final class LongsBuilder(counted: Boolean) extends ListBuilder(counted) {
    private val added = Array.newBuilder[Long]

    override def add(values: Array[Long], from: Int, until: Int): Unit = added ++= values.slice(from, until)

    override protected def values(): Values = Values.Longs(added.result())

    override protected def forLookUps(): FileValues = {
      val sorted = added.result()
      Arrays.sort(sorted)
      new FileValues.Sorted(Values.Longs(sorted))
    }
  }

  /** Builds a list of byte strings; many of them are looked up by their hashes alone. */
  private final class BytesBuilder(dataType: DataType, counted: Boolean) extends ListBuilder(counted) {
    private val added = mutable.ArrayBuffer.empty[Array[Byte]]

    override def add(values: Array[Array[Byte]], from: Int, until: Int): Unit =
      for (i <- from until until) added += ValueCountReader.inOrder(values(i), dataType)

    override protected def values(): Values = Values.Bytes(added.toArray)

    override protected def forLookUps(): FileValues =
      if (added.length <= MostTexts) {
        val sorted = added.toArray
        Arrays.sort(sorted, UnsignedOrder.comparator)
        new FileValues.Sorted(Values.Bytes(sorted))
      } else {
        val hash = new ValueHash(dataType)
        val sorted = added.iterator.map(hash.hashBytes).toArray
        Arrays.sort(sorted)
        new FileValues.HashList(sorted)
      }
  }

  private val MostTexts = 4096
}

/** The values of some files. */
private[statistics] final class ListValues(dataType: DataType, files: collection.Map[Int, FileValues])
  extends ColumnValues {

  override def lack(points: Values): Int => Boolean = {
    lazy val hashes = new ValueHash(dataType).hash(points).sorted
    file => files.get(file).exists(_.lack(points, hashes))
  }

  override def within(points: Values): Int => Boolean = file => files.get(file).exists(_.within(points))

  override def listed(file: Int): Option[Values] = files.get(file).flatMap(_.listed)

  override def evidence(file: Int): Option[ValueEvidence] = files.get(file).map(_.evidence)
}

/** The values of a column in one data file: all of them listed, or a bloom filter. */
private[statistics] sealed trait FileValues {

  /** @param hashes of the points, sorted */
  def lack(points: Values, hashes: => Array[Long]): Boolean

  def within(points: Values): Boolean

  /** All values, if they are in memory. */
  def listed: Option[Values] = None

  /** All values with the number of rows of each, if they are in memory. */
  def counted: Option[CountedValues] = None

  def evidence: ValueEvidence

  /** Bytes in memory. */
  def weight: Long
}

private[statistics] object FileValues {

  /** All values, sorted; of byte strings only few, so that a look-up may compare with all of them. */
  final class Sorted(values: Values) extends FileValues {
    override def lack(points: Values, hashes: => Array[Long]): Boolean = points.areOutOf(values)
    override def within(points: Values): Boolean = values.length <= points.length && values.areIn(points)
    override def listed: Option[Values] = Some(values)
    override def evidence: ValueEvidence = ValueEvidence.InList(values.length)
    override def weight: Long = values.weight
  }

  /** All values with the number of rows of each; not for look-ups. */
  final class Counted(all: CountedValues) extends FileValues {
    override def lack(points: Values, hashes: => Array[Long]): Boolean = false
    override def within(points: Values): Boolean = false
    override def counted: Option[CountedValues] = Some(all)
    override def evidence: ValueEvidence = ValueEvidence.InList(all.counts.length)
    override def weight: Long = all.values.weight + 8L * all.counts.length
  }

  /** The hashes of all values, which are byte strings: a value with another hash is not in the file. */
  final class HashList(sorted: Array[Long]) extends FileValues {
    override def lack(points: Values, hashes: => Array[Long]): Boolean =
      Values.Longs(hashes).areOutOf(Values.Longs(sorted))
    override def within(points: Values): Boolean = false
    override def evidence: ValueEvidence = ValueEvidence.InList(sorted.length)
    override def weight: Long = 24 + 8L * sorted.length
  }

  /** The bits of a bloom filter. */
  final class Bloom(bits: Array[Byte]) extends FileValues {
    override def lack(points: Values, hashes: => Array[Long]): Boolean = {
      val filter = new BlockSplitBloomFilter(bits)
      !hashes.exists(filter.findHash(_))
    }

    override def within(points: Values): Boolean = false
    override def evidence: ValueEvidence = ValueEvidence.InFilter
    override def weight: Long = 24L + bits.length
  }
}
