package org.metastore.spark.statistics.objects

/** The rows of one column in a row group of a summary. */
private[statistics] final class ColumnRows(val from: Int, val until: Int, ordinals: Array[Long], files: Int) {
  private val dense = until - from == files && ColumnRows.areConsecutive(ordinals, from, until)

  /** Values by file, `missing` where a file has no row. */
  def scatter(values: Array[Long], missing: Long): Array[Long] = byFile(values, Fill.longs(files, missing))

  def scatter(values: Array[Double], missing: Double): Array[Double] =
    byFile(values, Fill.doubles(files, missing))

  def scatter(values: Array[Byte]): Array[Byte] = byFile(values, new Array[Byte](files))

  def scatter(values: Array[Array[Byte]]): Array[Array[Byte]] = byFile(values, new Array[Array[Byte]](files))

  /** The files that have a row. */
  def present: Array[Boolean] = {
    val all = new Array[Boolean](until)
    java.util.Arrays.fill(all, true)
    byFile(all, new Array[Boolean](files))
  }

  /**
   * Arrays as they are where they have a row a file; else rows are copied to their files, neighbours at once.
   */
  private def byFile[T <: AnyRef](values: T, out: => T): T =
    if (dense && java.lang.reflect.Array.getLength(values) == files) values
    else {
      val result = out
      var row = from
      while (row < until) {
        val file = ordinals(row).toInt
        var next = row + 1
        while (next < until && ordinals(next) == ordinals(row) + next - row) next += 1
        if (file < 0 || file + next - row > files)
          throw new IllegalArgumentException(s"it has a row for file ${ordinals(next - 1)}")
        System.arraycopy(values, row, result, file, next - row)
        row = next
      }
      result
    }
}

private[statistics] object ColumnRows {

  /** Whether the ordinals in these rows count from 0. */
  def areConsecutive(ordinals: Array[Long], from: Int, until: Int): Boolean = {
    var row = from
    while (row < until && ordinals(row) == row - from) row += 1
    row == until
  }
}

/** Some fields of one row group of a summary, or of some of its rows. Each call decodes a field. */
private[statistics] final class RowGroup(
    footer: ParquetFooter,
    rows: Int,
    pages: Map[Int, ChunkPages],
    first: Int) {
  private def leaves(field: String): Int = footer.leaf(field)

  def has(field: String): Boolean = footer.has(field)

  def longs(field: String, missing: Long): Array[Long] =
    ColumnDecoder.longs(pages(leaves(field)), rows, missing)

  def presentLongs(field: String): (Array[Long], Array[Boolean]) =
    ColumnDecoder.longsWithPresence(pages(leaves(field)), rows)

  def doubles(field: String): Array[Double] = ColumnDecoder.doubles(pages(leaves(field)), rows)

  def bytes(field: String): Array[Array[Byte]] = ColumnDecoder.bytes(pages(leaves(field)), rows)

  /** The rows of each column, which follow each other, ordered by file. */
  def spans(files: Int, field: String = "file"): Map[Int, ColumnRows] = {
    val columns = longs("column", -1)
    val ordinals = longs(field, -1)
    if (first != 0) ordinals.indices.foreach(i => ordinals(i) -= first)
    var spans = Map.empty[Int, ColumnRows]
    var from = 0
    while (from < rows) {
      var until = from + 1
      while (until < rows && columns(until) == columns(from)) until += 1
      val column = columns(from).toInt
      if (spans.contains(column))
        throw new IllegalArgumentException(s"its rows of column $column do not stand together")
      spans += column -> new ColumnRows(from, until, ordinals, files)
      from = until
    }
    spans
  }
}

private[statistics] object RowGroup {

  /** Decodes fields of one row group. A failure means that the object is damaged. */
  def read[T](
      objects: ObjectReader,
      ref: ObjectRef,
      group: Int,
      fields: Seq[String])(decode: RowGroup => T): T =
    objects.asDamage(ref) {
      val footer = objects.footer(ref)
      val pages = objects.chunks(ref, footer, group, fields.map(footer.leaf))
      decode(new RowGroup(footer, footer.rowGroups(group).rows.toInt, pages, first = 0))
    }
}
