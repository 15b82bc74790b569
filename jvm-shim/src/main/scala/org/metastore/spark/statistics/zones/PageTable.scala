package org.metastore.spark.statistics.zones

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockColumn, BlockJoin, BlockPart, BlockRows, ColumnLoader, ColumnSource
}
import org.metastore.spark.statistics.objects.{ColumnChunk, ParquetFooter}

/**
 * Where the pages of a summary lie that planning reads, with one digest for those of the same rows (docs/format.md, "Objects").
 */
private[statistics] final class PageTable private (
    footer: ParquetFooter,
    val rows: Int,
    entries: ByteBuffer) {
  import PageTable._

  private val before = footer.rowGroups.map(group => pagesOf(group.rows, rows)).scanLeft(0)(_ + _)
  private val leaves = Fields.map(footer.leaf)

  def weight: Long = entries.limit()

  /** How many pages a column of a row group has. */
  def count(group: Int): Int = before(group + 1) - before(group)

  /** How many rows a page has. */
  def rowsOf(group: Int, page: Int): Int =
    math.min(rows, footer.rowGroups(group).rows - page.toLong * rows).toInt

  /** A page as a column chunk of its own, by leaf; in the order of the digest. */
  def chunks(group: Int, page: Int): Seq[(Int, ColumnChunk)] = leaves.zipWithIndex.map { case (leaf, field) =>
    val whole = footer.chunk(group, leaf)
    var start = 0L
    for (earlier <- 0 until page) start += length(group, earlier, field)
    val bytes = length(group, page, field)
    if (start + bytes > whole.length) throw new IllegalArgumentException("a page lies outside of its column")
    leaf -> whole.copy(start = whole.start + start, length = bytes, values = rowsOf(group, page))
  }

  def digest(group: Int, page: Int): Array[Byte] = {
    val digest = new Array[Byte](DigestBytes)
    (0 until DigestBytes).foreach(i => digest(i) = entries.get(at(group, page) + i))
    digest
  }

  private def at(group: Int, page: Int): Int = (before(group) + page) * EntryBytes

  private def length(group: Int, page: Int, field: Int): Long =
    entries.getInt(at(group, page) + DigestBytes + field * 4) & 0xffffffffL
}

private[statistics] object PageTable {
  private val RowsKey = "metastore.page_rows"
  private val Key = "metastore.pages"

  /** The columns whose pages stand in the table. */
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

  /** The table in a footer; `None` where there is none that can be used: then whole columns are read. */
  def of(footer: ParquetFooter): Option[PageTable] = Try {
    for (rows <- footer.text(RowsKey).map(_.toInt); text <- footer.text(Key)) yield {
      val bytes = Base64.getDecoder.decode(text)
      require(rows > 0 && footer.rowGroups.map(group =>
        pagesOf(group.rows, rows).toLong).sum * EntryBytes == bytes.length)
      new PageTable(footer, rows, ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN))
    }
  }.toOption.flatten
}

/** Columns of few files of a scan: of a large block only the pages that hold them, of other blocks all. */
private[statistics] final class PageLoader(
    reader: ZoneReader,
    joined: IndexedSeq[BlockJoin],
    whole: ColumnLoader[BlockColumn],
    budget: Budget) {
  import PageLoader._

  private type Column = (String, DataType)

  private val loaded = mutable.HashMap.empty[(Int, Column), Seq[BlockPart[BlockColumn]]]
  private val failed = mutable.HashMap.empty[Column, Reason]

  def load(columns: Seq[Column]): Unit = synchronized {
    val reads = locatePages(columns).filter(_.isLittle)
    val pages = reads.flatMap(read => read.pages.map(read -> _))
    val found = PlanningPool.run(pages.map { case (read, page) => () => read.part(page) }, budget)
    reads.foreach(read => loaded((read.place, read.column)) = Nil)
    pages.map(_._1).zip(found).foreach {
      case (read, Right(part)) => loaded((read.place, read.column)) :+= part
      case (read, Left(reason)) => failed(read.column) = reason
    }
    joined.indices.groupBy(place => columns.filterNot(column => loaded.contains((place, column)))).foreach {
      case (others, places) => whole.load(places.map(joined(_).block), others)
    }
  }

  /** The parts of a column by block, the least preferred first, or why there are none. */
  def parts(column: Column): Either[Reason, Seq[BlockPart[BlockColumn]]] = synchronized {
    val found = joined.indices.flatMap { place =>
      loaded.getOrElse((place, column), whole.parts(Seq(joined(place)), column).getOrElse(Nil))
    }
    val isRead = joined.indices.exists(place => loaded.contains((place, column))) && !failed.contains(column)
    if (found.nonEmpty || isRead) Right(found) // none where none of the files that are left was analyzed
    else failed.get(column).toLeft(()).flatMap(_ => whole.parts(joined, column))
  }

  /** Where columns of blocks have single pages. A column that has several types in a block is read whole. */
  private def locatePages(columns: Seq[Column]): Seq[Read] = {
    val sources = for {
      place <- joined.indices
      if joined(place).block.zones.nonEmpty
      column <- columns
      all = ColumnSource.of(joined(place).block, column, _.summaryOf(_))
      if all.size == 1
    } yield (place, column, all.head)
    val tables = PlanningPool.run(
      sources.map { case (_, _, source) => () => reader.pages(source.block, source.ref, source.ordinal) },
      budget)
    sources.zip(tables).collect { case ((place, column, source), Right(Some((group, table)))) =>
      new Read(place, column, source, group, table)
    }
  }

  /** The pages of one column of a block that hold files which are asked for. */
  private final class Read(
      val place: Int,
      val column: Column,
      source: ColumnSource,
      group: Int,
      table: PageTable) {
    private val ordinals = joined(place).ordinals

    val pages: Seq[Int] = ordinals.filter(_ >= 0).map(_ / table.rows).distinct.toSeq

    def isLittle: Boolean = pages.size <= table.count(group) / Share

    def part(page: Int): BlockPart[BlockColumn] = {
      val column = reader.readPage(source.block, source.ref, source.ordinal, group, table, page)
      budget.reserve(column.weight)
      val first = page * table.rows
      val rows = joined(place).rows.slice(first, first + table.rowsOf(group, page))
      val inside = ordinals.map(ordinal =>
        if (ordinal >= first && ordinal < first + rows.length) ordinal - first else -1)
      BlockPart(new BlockJoin(source.block, new BlockRows(rows), inside), source.served, column)
    }
  }
}

private object PageLoader {
  private val Share = 4 // of more of the pages the whole column takes hardly longer
}
