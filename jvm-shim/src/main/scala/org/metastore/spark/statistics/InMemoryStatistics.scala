package org.metastore.spark.statistics

import scala.reflect.ClassTag

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.statistics.columns.{
  BlockColumn, BlockJoin, BlockPart, BlockRows, Bounds, CatalystValue, ColumnSizes, ColumnSummary, ColumnSums,
  ColumnValues, CountedValues, FileGroupStatistics, FileList, FileSetStatistics, FileSummary,
  SummaryAssembler, TypePromotion
}
import org.metastore.spark.statistics.objects.{Block, Encoding, Fill, ObjectRef, Values}
import org.metastore.spark.statistics.values.{FileValues, ListValues}

/**
 * Statistics of a few files from memory, for questions of the kind "would a file like this be skipped?". They
 * pass the same checks as stored ones.
 *
 * @param rows   of each file; -1 is unknown
 * @param listed all values of a column in each file, sorted, but NULL and NaN; None: unknown
 */
final class InMemoryStatistics(
    override val rows: Array[Long],
    columns: Map[(String, DataType), Seq[Option[FileSummary]]],
    listed: Map[(String, DataType), Seq[Option[Values]]] = Map.empty)
  extends FileSetStatistics {
  private val length = rows.length
  private val ordinals = Array.range(0, length)

  override val files: FileList = new FileList(ordinals.map(i => s"file-$i"), new Array[Long](length))
  override def fingerprint: String = "given"
  override def isKnown(file: Int): Boolean = true
  override def knownFiles: Int = length
  override def load(columns: Seq[(String, DataType)]): Unit = ()

  override def groups(columns: Seq[(String, DataType)]): Seq[FileGroupStatistics] = Nil

  override def among(files: Array[Int]): FileSetStatistics = {
    def select[T](all: Map[(String, DataType), Seq[T]]) =
      for ((column, values) <- all) yield column -> files.toSeq.map(values(_))
    new InMemoryStatistics(files.map(rows(_)), select(columns), select(listed))
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    summariesOf(key, dataType).map(assembled(key, dataType, _))

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] =
    summariesOf(key, dataType).map { summaries =>
      new ColumnSizes(
        valuesOf(summaries, -1L)(_.distinct),
        valuesOf(summaries, Double.NaN)(_.avgLen),
        valuesOf(summaries, -1L)(_.maxLen))
    }

  private def summariesOf(key: String, dataType: DataType): Either[Reason, Seq[Option[FileSummary]]] =
    columns.get((key, dataType)).toRight(unknown(key))

  private def unknown(key: String): Reason = Reason(ReasonCode.UnknownColumn, "column" -> key)

  /** A value of each file's summary, `missing` where it has none. */
  private def valuesOf[T: ClassTag](summaries: Seq[Option[FileSummary]], missing: T)(
      get: FileSummary => Option[T]): Array[T] =
    summaries.map(_.flatMap(get).getOrElse(missing)).toArray

  override def sums(key: String, dataType: DataType): Either[Reason, ColumnSums] = Left(unknown(key))

  override def valueCounts(
      key: String,
      dataType: DataType,
      selected: Array[Int]): collection.Map[Int, CountedValues] =
    Map.empty

  override def values(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      filters: Boolean,
      most: Long): ColumnValues =
    listed.get((key, dataType)) match {
      case None => ColumnValues.Unknown
      case Some(lists) =>
        val values =
          for (file <- selected.toSeq; list <- lists(file)) yield file -> new FileValues.Sorted(list)
        new ListValues(dataType, values.toMap)
    }

  override def frequencies(key: String, dataType: DataType, value: Any, selected: Array[Int]): Array[Long] =
    Fill.longs(selected.length, -1)

  private def assembled(
      key: String,
      dataType: DataType,
      summaries: Seq[Option[FileSummary]]): ColumnSummary = {
    val block = Block("given", "full", IndexedSeq.empty, InMemoryStatistics.NoObject, Nil)
    val joined = new BlockJoin(block, new BlockRows(rows), ordinals)
    val served = if (TypePromotion.hasBounds(dataType)) TypePromotion.Full else TypePromotion.Counts
    val part = BlockPart(joined, served, stored(dataType, summaries))
    new SummaryAssembler(key, dataType, length).assemble(Seq(part))
  }

  private def stored(dataType: DataType, summaries: Seq[Option[FileSummary]]): BlockColumn = {
    def longs(bound: FileSummary => Option[Any], missing: Long): Array[Long] =
      valuesOf(summaries, missing)(summary => bound(summary).map(CatalystValue.orderedLong(_, dataType)))
    def bytes(bound: FileSummary => Option[Any]): Array[Array[Byte]] =
      valuesOf[Array[Byte]](summaries, null)(summary =>
        bound(summary).map(CatalystValue.orderedBytes(_, dataType)))
    val encoding = TypePromotion.encoding(dataType)
    val isBytes = encoding.contains(Encoding.BinaryValues)
    val isNumber = encoding.isDefined && !isBytes
    new BlockColumn(
      summaries.map(_.isDefined).toArray,
      valuesOf(summaries, -1L)(summary => Some(summary.rows)),
      valuesOf(summaries, -1L)(_.nulls),
      valuesOf(summaries, -1L)(_.nans),
      if (isNumber) longs(_.lo, Long.MinValue) else null,
      if (isNumber) longs(_.hi, Long.MaxValue) else null,
      if (isBytes) bytes(_.lo) else null,
      if (isBytes) bytes(_.hi) else null,
      valuesOf(summaries, 0.toByte)(summary => Some(flags(summary))))
  }

  private def flags(summary: FileSummary): Byte = {
    val lo: Int = if (summary.loExact) Bounds.HasLo | Bounds.LoExact else Bounds.HasLo
    val hi: Int = if (summary.hiExact) Bounds.HasHi | Bounds.HiExact else Bounds.HasHi
    (summary.lo.fold(0)(_ => lo) | summary.hi.fold(0)(_ => hi)).toByte
  }
}

private object InMemoryStatistics {
  private val NoObject = ObjectRef("", 0, "", 0, 0, "")
}
