package org.metastore.spark.statistics.values

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.objects.{
  ObjectReader, ObjectRef, ObjectRow, ObjectRows, ParquetFooter, RowGroup, RowReader, Snapshot, SummaryRow,
  ValueCount
}

/** Reads the histograms of an analyzed snapshot's columns. */
private[statistics] final class HistogramReader(objects: ObjectReader) {
  import HistogramReader._

  private val rows = new RowReader(objects)

  /** The histogram of a column; None if the statistics have neither its values nor bins. */
  def histogram(
      snapshot: Snapshot,
      column: Int,
      summary: ObjectRef,
      dataType: DataType): CacheEntry[Option[ColumnHistogram]] =
    CacheEntry[Option[ColumnHistogram]](
      s"histogram:${summary.name}:${summary.footerSha256}:$column:${dataType.catalogString}",
      _.fold(16L)(_.weight)) {
      for {
        row <- readRow(summary, column)(ObjectRows.summary)
        listed = readValues(snapshot, column, row, dataType)
        histogram <- ColumnHistogram.fromSummary(dataType, row, listed, bins(snapshot, column, row))
      } yield histogram
    }

  /** The first reads for histograms of some columns: footers, which also bring the whole of small objects. */
  def firstReads(snapshot: Snapshot, columns: Seq[Int]): Seq[() => ParquetFooter] = {
    val refs = mutable.LinkedHashSet.empty[ObjectRef]
    for (column <- columns) {
      refs ++= snapshot.summary
      refs ++= snapshot.frequenciesOf(column).map(_.ref)
    }
    for (ref <- refs.toSeq) yield () => objects.footer(ref)
  }

  /** Reads the row of a column from an object with one row a column. */
  private def readRow[T](ref: ObjectRef, column: Int)(make: ObjectRow => T): Option[T] =
    rows.rows(ref, _.groupsOf(Set(column)), _.int("column").contains(column))(make).headOption

  private def bins(snapshot: Snapshot, column: Int, row: SummaryRow): Option[Histogram] =
    if (row.frequencies.contains("complete") && row.distinct.exists(_ <= MostValues)) None
    else {
      val stored = snapshot.histograms.flatMap(readRow(_, column)(ObjectRows.histogram))
      stored.flatMap(Histogram.fromRow(_, row)).orElse(Histogram.fromPercentiles(row))
    }

  /**
   * Reads values with counts: the most frequent of many; only one row group of lists that are cut by hashes.
   */
  private def readValues(
      snapshot: Snapshot,
      column: Int,
      row: SummaryRow,
      dataType: DataType): IndexedSeq[ValueCount] =
    if (row.frequencies.isEmpty || row.frequencies.contains("none")) IndexedSeq.empty
    else {
      val isShort = row.distinct.exists(_ <= MostValues) || !snapshot.distribution.contains(column)
      val lists = if (isShort) snapshot.frequenciesOf(column) else snapshot.frequencies.take(1)
      val all = lists.iterator.flatMap(list => values(list.ref, column, dataType, few = !isShort))
      all.take(MostValues).toIndexedSeq
    }

  private def values(
      ref: ObjectRef,
      column: Int,
      dataType: DataType,
      few: Boolean): IndexedSeq[ValueCount] = {
    val field = ValueCountReader.fieldOf(dataType)
    val groups = objects.footer(ref).groupsOf(Set(column)).filter(_ == 0 || !few)
    val result = IndexedSeq.newBuilder[ValueCount]
    var remaining = MostValues
    for (group <- groups if remaining > 0)
      RowGroup.read(objects, ref, group, Seq("column", field, "frequency", "error")) { part =>
        val columns = part.longs("column", -1)
        val counts = part.longs("frequency", 0)
        val errors = part.longs("error", 0)
        val values: Int => Any = field match {
          case "value_binary" => part.bytes(field)
          case "value_double" => part.doubles(field)
          case _ => part.longs(field, 0)
        }
        val indices = columns.indices.filter(i => columns(i) == column).take(remaining)
        remaining -= indices.length
        for (i <- indices if values(i) != null)
          result += ValueCount(values(i), counts(i), errors(i), Map.empty)
      }
    result.result()
  }
}

private object HistogramReader {
  private val MostValues = 1 << 15 // for the estimates of one column
}
