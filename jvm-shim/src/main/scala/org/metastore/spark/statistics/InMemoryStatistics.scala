package org.metastore.spark.statistics

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
 * Statistics of a few files that are given instead of read: for questions of the kind "would a file like this be skipped?". They
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

  override def among(files: Array[Int]): FileSetStatistics =
    new InMemoryStatistics(
      files.map(rows(_)),
      columns.map { case (column, of) => column -> files.toSeq.map(of(_)) },
      listed.map { case (column, of) => column -> files.toSeq.map(of(_)) })

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    columns.get((key, dataType)).map(assembled(key, dataType, _)).toRight(Reason(
      ReasonCode.UnknownColumn,
      "column" -> key))

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] =
    columns.get((key, dataType)).map { summaries =>
      def collect[T](missing: T)(get: FileSummary => Option[T]): Seq[T] =
        summaries.map(_.flatMap(get).getOrElse(missing))
      new ColumnSizes(
        collect(-1L)(_.distinct).toArray,
        collect(Double.NaN)(_.avgLen).toArray,
        collect(-1L)(_.maxLen).toArray)
    }.toRight(Reason(ReasonCode.UnknownColumn, "column" -> key))

  override def sums(key: String, dataType: DataType): Either[Reason, ColumnSums] =
    Left(Reason(ReasonCode.UnknownColumn, "column" -> key))

  override def valueCounts(
      key: String,
      dataType: DataType,
      among: Array[Int]): collection.Map[Int, CountedValues] =
    Map.empty

  override def values(
      key: String,
      dataType: DataType,
      among: Array[Int],
      filters: Boolean,
      most: Long): ColumnValues =
    listed.get((key, dataType)).fold[ColumnValues](ColumnValues.Unknown) { of =>
      new ListValues(
        dataType,
        among.iterator.flatMap(file => of(file).map(file -> new FileValues.Sorted(_))).toMap)
    }

  override def frequencies(key: String, dataType: DataType, value: Any, among: Array[Int]): Array[Long] =
    Fill.longs(among.length, -1)

  private def assembled(
      key: String,
      dataType: DataType,
      summaries: Seq[Option[FileSummary]]): ColumnSummary = {
    val block = Block("given", "full", IndexedSeq.empty, InMemoryStatistics.NoObject, Nil)
    val joined = new BlockJoin(block, new BlockRows(rows), ordinals)
    val served = if (TypePromotion.hasBounds(dataType)) TypePromotion.Full else TypePromotion.Counts
    new SummaryAssembler(
      key,
      dataType,
      length).assemble(Seq(BlockPart(joined, served, stored(dataType, summaries))))
  }

  private def stored(dataType: DataType, summaries: Seq[Option[FileSummary]]): BlockColumn = {
    def counts(get: FileSummary => Option[Long]): Array[Long] =
      summaries.map(_.flatMap(get).getOrElse(-1L)).toArray
    def longs(get: FileSummary => Option[Any], missing: Long): Array[Long] =
      summaries.map(_.flatMap(get).fold(missing)(CatalystValue.orderedLong(_, dataType))).toArray
    def bytes(get: FileSummary => Option[Any]): Array[Array[Byte]] =
      summaries.map(_.flatMap(get).fold[Array[Byte]](null)(CatalystValue.orderedBytes(_, dataType))).toArray
    val encoding = TypePromotion.encoding(dataType)
    val isBytes = encoding.contains(Encoding.BinaryValues)
    val isNumber = encoding.isDefined && !isBytes
    new BlockColumn(
      summaries.map(_.isDefined).toArray,
      counts(summary => Some(summary.rows)),
      counts(_.nulls),
      counts(_.nans),
      if (isNumber) longs(_.lo, Long.MinValue) else null,
      if (isNumber) longs(_.hi, Long.MaxValue) else null,
      if (isBytes) bytes(_.lo) else null,
      if (isBytes) bytes(_.hi) else null,
      summaries.map(_.fold(0.toByte)(flags)).toArray)
  }

  private def flags(summary: FileSummary): Byte = (
    (if (summary.lo.isDefined) Bounds.HasLo else 0) | (if (summary.hi.isDefined) Bounds.HasHi else 0) |
      (if (summary.lo.isDefined && summary.loExact) Bounds.LoExact else 0) |
      (if (summary.hi.isDefined && summary.hiExact) Bounds.HiExact else 0)).toByte
}

private object InMemoryStatistics {
  private val NoObject = ObjectRef("", 0, "", 0, 0, "")
}
