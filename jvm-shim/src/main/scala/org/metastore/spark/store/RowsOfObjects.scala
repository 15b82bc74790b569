package org.metastore.spark.store

import org.apache.parquet.example.data.Group

/** Makes the rows of each kind of object (docs/format.md, "Objects"). */
private[store] object ObjectRows {

  def dataFile(row: ObjectRow): DataFileRow = DataFileRow(
    row.int("file").get, row.text("path").get, row.long("size").get, row.long("modified"), row.long("rows"),
    row.map("partition")(entry => if (entry.getFieldRepetitionCount(1) == 0) None else Some(entry.getString(1, 0)))
      .collect { case (name, Some(value)) => name -> value },
    detail(row, "sketches"), row.int("sketches_file"), withFile(row, "frequencies"), withFile(row, "histograms"))

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
    row.long("deleted_rows"), row.int("log_files"), row.long("modified"))

  def sketch(row: ObjectRow): SketchRow = SketchRow(row.int("column").get, row.int("file"), row.bytes("theta"))

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
