package org.metastore.spark.statistics.zones

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64

import scala.util.Try

import org.metastore.spark.statistics.objects.{ColumnChunk, ParquetFooter}

/**
 * The offsets of the summary pages that planning reads, with a digest of the pages of the same rows
 * (docs/format.md, "Objects").
 */
private[statistics] final class PageTable private (
    footer: ParquetFooter,
    val rows: Int,
    entries: ByteBuffer) {
  import PageTable._

  private val before = footer.rowGroups.map(group => pagesOf(group.rows, rows)).scanLeft(0)(_ + _)
  private val leaves = Fields.map(footer.leaf)

  def weight: Long = entries.limit()

  /** The number of pages of a column of a row group. */
  def count(group: Int): Int = before(group + 1) - before(group)

  /** The number of rows of a page. */
  def rowsOf(group: Int, page: Int): Int =
    math.min(rows, footer.rowGroups(group).rows - page.toLong * rows).toInt

  /** A page as a column chunk of its own, by leaf; in the order of the digest. */
  def chunks(group: Int, page: Int): Seq[(Int, ColumnChunk)] = leaves.zipWithIndex.map { case (leaf, field) =>
    val chunk = footer.chunk(group, leaf)
    var start = 0L
    for (earlier <- 0 until page) start += length(group, earlier, field)
    val bytes = length(group, page, field)
    if (start + bytes > chunk.length) throw new IllegalArgumentException("a page lies outside of its column")
    leaf -> chunk.copy(start = chunk.start + start, length = bytes, values = rowsOf(group, page))
  }

  def digest(group: Int, page: Int): Array[Byte] = {
    val digest = new Array[Byte](DigestBytes)
    for (i <- 0 until DigestBytes) digest(i) = entries.get(at(group, page) + i)
    digest
  }

  private def at(group: Int, page: Int): Int = (before(group) + page) * EntryBytes

  private def length(group: Int, page: Int, field: Int): Long =
    entries.getInt(at(group, page) + DigestBytes + field * 4) & 0xffffffffL
}

private[statistics] object PageTable {
  private val RowsKey = "metastore.page_rows"
  private val Key = "metastore.pages"

  /** The columns whose pages are in the table. */
  private val Fields: IndexedSeq[String] = IndexedSeq(
    "column",
    "file",
    "rows",
    "nulls",
    "nans",
    "lo_long",
    "hi_long",
    "lo_double",
    "hi_double",
    "lo_binary",
    "hi_binary",
    "lo_exact",
    "hi_exact")

  private val DigestBytes = 16
  private val EntryBytes = DigestBytes + Fields.size * 4

  private def pagesOf(rows: Long, pageRows: Int): Int = Math.toIntExact((rows + pageRows - 1) / pageRows)

  /** The table in a footer; `None` if it has no valid one: then whole columns are read. */
  def fromFooter(footer: ParquetFooter): Option[PageTable] = Try {
    for {
      rows <- footer.text(RowsKey).map(_.toInt)
      text <- footer.text(Key)
    } yield {
      val bytes = Base64.getDecoder.decode(text)
      require(rows > 0 && footer.rowGroups.map(group =>
        pagesOf(group.rows, rows).toLong).sum * EntryBytes == bytes.length)
      new PageTable(footer, rows, ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN))
    }
  }.toOption.flatten
}
