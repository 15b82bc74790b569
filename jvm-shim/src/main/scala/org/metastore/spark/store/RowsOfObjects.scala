package org.metastore.spark.store

import org.apache.parquet.example.data.Group

/** Makes the rows of each kind of object (docs/format.md, "Objects"). */
private[store] object RowsOfObjects {

  def dataFile(row: ObjectRow): DataFileRow = DataFileRow(
    row.int("file").get, row.text("path").get, row.long("size").get, row.long("modified"), row.long("rows"),
    row.map("partition")(entry => if (entry.getFieldRepetitionCount(1) == 0) None else Some(entry.getString(1, 0)))
      .collect { case (name, Some(value)) => name -> value },
    sketches(row), row.int("sketches_file"))

  private def sketches(row: ObjectRow): Option[ObjectRef] = row.text("sketches_name").map { name =>
    val ref = ObjectRef(
      name, row.long("sketches_length").get, row.text("sketches_sha256").get, rows = 0,
      row.long("sketches_footer_length").orElse(row.int("sketches_footer_length").map(_.toLong)).get.toInt,
      row.text("sketches_footer_sha256").get)
    ManifestReader.refuseName(ref, "sketches")
    ref
  }

  def tableFile(row: ObjectRow): TableFileRow = TableFileRow(
    row.text("block"), row.int("file"), row.text("path").get, row.long("size").get, row.long("rows"), row.text("deletes"),
    row.long("deleted_rows"), row.int("log_files"))

  def sketch(row: ObjectRow): SketchRow = SketchRow(row.int("column").get, row.int("file").getOrElse(-1), row.bytes("theta"))

  def summary(row: ObjectRow): SummaryRow = SummaryRow(
    column = row.int("column").get,
    file = row.int("file").getOrElse(-1),
    rows = row.long("rows").getOrElse(-1),
    nulls = row.long("nulls"),
    nans = row.long("nans"),
    lo = bound(row, "lo"),
    hi = bound(row, "hi"),
    loExact = row.boolean("lo_exact").contains(true),
    hiExact = row.boolean("hi_exact").contains(true),
    distinct = row.long("distinct"),
    distinctError = row.double("distinct_error"),
    sumExact = row.unscaled("sum_exact").map(new java.math.BigDecimal(_)),
    sum = row.double("sum"),
    mean = row.double("mean"),
    m2 = row.double("m2"),
    avgLen = row.double("avg_len"),
    maxLen = row.long("max_len"),
    trues = row.long("trues"),
    compressedBytes = row.long("compressed_bytes"),
    uncompressedBytes = row.long("uncompressed_bytes"),
    frequencies = row.text("frequencies"),
    frequenciesFloor = row.long("frequencies_floor"),
    percentiles = percentiles(row),
    extra = row.map("extra")(entry => entry.getBinary(1, 0).getBytes),
    files = row.int("files").getOrElse(1),
    singles = row.long("singles"),
    frequenciesAlgorithm = row.text("frequencies_algorithm"))

  private def bound(row: ObjectRow, side: String): Option[Any] =
    row.long(s"${side}_long").orElse[Any](row.double(s"${side}_double")).orElse(row.bytes(s"${side}_binary"))

  private def percentiles(row: ObjectRow): IndexedSeq[Any] = {
    def of(encoding: String)(item: Group => Any): IndexedSeq[Any] = row.list(s"percentiles_$encoding")(item)
    Seq(
      of("long")(_.getLong(0, 0)), of("double")(_.getDouble(0, 0)), of("binary")(_.getBinary(0, 0).getBytes))
      .find(_.nonEmpty).getOrElse(IndexedSeq.empty)
  }
}
