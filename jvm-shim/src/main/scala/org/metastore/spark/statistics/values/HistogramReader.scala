package org.metastore.spark.statistics.values

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.objects.{
  ObjectReader, ObjectRef, ObjectRow, ObjectRows, ParquetFooter, RowGroup, RowReader, Snapshot, SummaryRow,
  ValueCount
}

/** Reads how the values of a column are spread over the rows of an analyzed snapshot. */
private[statistics] final class HistogramReader(objects: ObjectReader) {
  import HistogramReader._

  private val rows = new RowReader(objects)

  /** The histogram of a column; None where the statistics have neither its values nor bins. */
  def histogram(
      snapshot: Snapshot,
      column: Int,
      summary: ObjectRef,
      dataType: DataType): CacheEntry[Option[ColumnHistogram]] =
    CacheEntry[Option[ColumnHistogram]](
      s"histogram:${summary.name}:${summary.footerSha256}:$column:${dataType.catalogString}",
      _.fold(16L)(_.weight)) {
      for {
        row <- rowOf(summary, column)(ObjectRows.summary)
        listed = readValues(snapshot, column, row, dataType)
        histogram <- ColumnHistogram.fromSummary(dataType, row, listed, bins(snapshot, column, row))
      } yield histogram
    }

  /** The reads with which histograms of some columns begin: of footers, and with these of the whole of small objects. */
  def firstReads(snapshot: Snapshot, columns: Seq[Int]): Seq[() => ParquetFooter] = {
    val refs = mutable.LinkedHashSet.empty[ObjectRef]
    for (column <- columns) {
      refs ++= snapshot.summary
      refs ++= snapshot.frequenciesOf(column).map(_.ref)
    }
    for (ref <- refs.toSeq) yield () => objects.footer(ref)
  }

  /** The row of a column in an object that has one a column. */
  private def rowOf[T](ref: ObjectRef, column: Int)(make: ObjectRow => T): Option[T] =
    rows.rows(ref, _.groupsOf(Set(column)), _.int("column").contains(column))(make).headOption

  private def bins(snapshot: Snapshot, column: Int, row: SummaryRow): Option[Histogram] =
    if (row.frequencies.contains("complete") && row.distinct.exists(_ <= MostValues)) None
    else {
      val stored = snapshot.histograms.flatMap(rowOf(_, column)(ObjectRows.histogram))
      stored.flatMap(Histogram.fromRow(_, row)).orElse(Histogram.fromPercentiles(row))
    }

  /** The values with counts: of very many the most frequent ones, of lists that are cut by hashes the first ten. */
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
    val found = IndexedSeq.newBuilder[ValueCount]
    var left = MostValues
    for (group <- groups if left > 0)
      RowGroup.read(objects, ref, group, Seq("column", field, "frequency", "error")) { part =>
        val columns = part.longs("column", -1)
        val counts = part.longs("frequency", 0)
        val errors = part.longs("error", 0)
        val values: Int => Any = field match {
          case "value_binary" => part.bytes(field)
          case "value_double" => part.doubles(field)
          case _ => part.longs(field, 0)
        }
        val places = columns.indices.filter(i => columns(i) == column).take(left)
        left -= places.length
        val filled = places.filter(values(_) != null)
        found ++= filled.map(i => ValueCount(values(i), counts(i), errors(i), Map.empty))
      }
    found.result()
  }
}

private object HistogramReader {
  private val MostValues = 1 << 15 // of a column, for estimates
}
