package org.metastore.spark.statistics.values

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.CacheEntry
import org.metastore.spark.statistics.objects.{
  ObjectReader, ObjectRef, ObjectRows, RowGroup, RowReader, Snapshot, SummaryRow, ValueCount
}

/** Reads how the values of a column are spread over the rows of an analyzed snapshot. */
private[statistics] final class HistogramReader(objects: ObjectReader) {
  import HistogramReader._

  private val rows = new RowReader(objects)

  /** None in the option where no more is kept than counts. */
  def histogram(
      snapshot: Snapshot,
      column: Int,
      summary: ObjectRef,
      dataType: DataType): CacheEntry[Option[ColumnHistogram]] =
    CacheEntry[Option[ColumnHistogram]](
      s"histogram:${summary.name}:${summary.footerSha256}:$column:${dataType.catalogString}",
      _.fold(16L)(_.weight)) {
      val row = rows.rows(summary, _.groupsOf(Set(column))) { row =>
        if (row.int("column").contains(column)) Some(ObjectRows.summary(row)) else None
      }.headOption
      row.flatMap(known =>
        ColumnHistogram.fromSummary(
          dataType,
          known,
          readValues(snapshot, column, known, dataType),
          bins(snapshot, column, known)))
    }

  private def bins(snapshot: Snapshot, column: Int, row: SummaryRow): Option[Histogram] =
    if (row.frequencies.contains("complete") && row.distinct.exists(_ <= MostValues)) None
    else snapshot.histograms.flatMap { ref =>
      rows.rows(ref, _.groupsOf(Set(column))) { stored =>
        if (stored.int("column").contains(column)) Some(ObjectRows.histogram(stored)) else None
      }.headOption
    }.flatMap(Histogram.fromRow(_, row)).orElse(Histogram.fromPercentiles(row))

  /** The values whose counts are kept: of very many the most frequent ones, of lists that are cut by hashes the first ten. */
  private def readValues(
      snapshot: Snapshot,
      column: Int,
      row: SummaryRow,
      dataType: DataType): IndexedSeq[ValueCount] =
    if (!row.frequencies.exists(_ != "none")) IndexedSeq.empty
    else {
      val all = snapshot.frequencies.filter(_.columns.contains(column)).map(_.ref)
      val isShort = row.distinct.exists(_ <= MostValues) || !snapshot.distribution.contains(column)
      if (isShort)
        all.iterator.flatMap(values(_, column, dataType, few = false)).take(MostValues).toIndexedSeq
      else snapshot.frequencies.headOption.toIndexedSeq.flatMap(head =>
        values(head.ref, column, dataType, few = true))
    }

  private def values(
      ref: ObjectRef,
      column: Int,
      dataType: DataType,
      few: Boolean): IndexedSeq[ValueCount] = {
    val field = ValueCountReader.fieldOf(dataType)
    val groups = objects.footer(ref).groupsOf(Set(column)).filter(_ == 0 || !few)
    var found = 0
    groups.flatMap { group =>
      if (found >= MostValues) IndexedSeq.empty
      else RowGroup.read(objects, ref, group, Seq("column", field, "frequency", "error")) { part =>
        val (columns, counts, errors) =
          (part.longs("column", -1), part.longs("frequency", 0), part.longs("error", 0))
        val value: Int => Any = field match {
          case "value_binary" =>
            val bytes = part.bytes(field)
            i => bytes(i)
          case "value_double" =>
            val doubles = part.doubles(field)
            i => doubles(i)
          case _ =>
            val longs = part.longs(field, 0)
            i => longs(i)
        }
        val places = columns.indices.filter(i => columns(i) == column).take(MostValues - found)
        found += places.length
        places.map(i => ValueCount(value(i), counts(i), errors(i), Map.empty)).filter(_.value != null)
      }
    }.toIndexedSeq
  }
}

private object HistogramReader {
  private val MostValues = 1 << 15 // of a column, for estimates
}
