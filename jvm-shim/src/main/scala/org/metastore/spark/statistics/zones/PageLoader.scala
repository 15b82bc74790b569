package org.metastore.spark.statistics.zones

import scala.collection.mutable

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.{Budget, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockColumn, BlockJoin, BlockPart, BlockRows, ColumnLoader, ColumnSource
}

/** Columns of few files of a scan: single pages of large blocks, and whole columns of other blocks. */
private[statistics] final class PageLoader(
    reader: ZoneReader,
    joined: IndexedSeq[BlockJoin],
    columnLoader: ColumnLoader[BlockColumn],
    budget: Budget) {
  import PageLoader._

  private type Column = (String, DataType)

  private val loaded = mutable.HashMap.empty[(Int, Column), Seq[BlockPart[BlockColumn]]]
  private val failed = mutable.HashMap.empty[Column, Reason]

  def load(columns: Seq[Column]): Unit = synchronized {
    val reads = locatePages(columns).filter(_.isLittle)
    val pages = for (read <- reads; page <- read.pages) yield read -> page
    val parts = PlanningPool.runFor(pages, budget) { case (read, page) => read.part(page) }
    for (read <- reads) loaded((read.index, read.column)) = Nil
    for (((read, _), Right(part)) <- parts) loaded((read.index, read.column)) :+= part
    for (((read, _), Left(reason)) <- parts) failed(read.column) = reason
    def missing(block: Int): Seq[Column] = columns.filterNot(column => loaded.contains((block, column)))
    for ((missingColumns, blocks) <- joined.indices.groupBy(missing))
      columnLoader.load(blocks.map(joined(_).block), missingColumns)
  }

  /** The parts of a column by block, the least preferred first, or the reason why there are none. */
  def parts(column: Column): Either[Reason, Seq[BlockPart[BlockColumn]]] = synchronized {
    val parts = joined.indices.flatMap { block =>
      loaded.getOrElse((block, column), columnLoader.parts(Seq(joined(block)), column).getOrElse(Nil))
    }
    val isRead = joined.indices.exists(block => loaded.contains((block, column)))
    if (parts.nonEmpty) Right(parts)
    else if (failed.contains(column)) Left(failed(column))
    else if (isRead) Right(Nil) // none of the selected files was analyzed
    else columnLoader.parts(joined, column)
  }

  /** The single pages of columns of blocks. A column that has several types in a block is read whole. */
  private def locatePages(columns: Seq[Column]): Seq[Read] = {
    val sources = for {
      block <- joined.indices
      if joined(block).block.zones.nonEmpty
      column <- columns
      all = ColumnSource.fromBlock(joined(block).block, column, _.summaryOf(_))
      if all.size == 1
    } yield (block, column, all.head)
    val tables = PlanningPool.runFor(sources, budget) { case (_, _, source) =>
      reader.pages(source.block, source.ref, source.ordinal)
    }
    for (((block, column, source), Right(Some((group, table)))) <- tables)
      yield new Read(block, column, source, group, table)
  }

  /** The pages of one column of a block that hold selected files; `index` is that of the block. */
  private final class Read(
      val index: Int,
      val column: Column,
      source: ColumnSource,
      group: Int,
      table: PageTable) {
    private val ordinals = joined(index).ordinals

    val pages: Seq[Int] = ordinals.filter(_ >= 0).map(_ / table.rows).distinct.toSeq

    def isLittle: Boolean = pages.size <= table.count(group) / Share

    def part(page: Int): BlockPart[BlockColumn] = {
      val column = reader.readPage(source.block, source.ref, source.ordinal, group, table, page)
      budget.reserve(column.weight)
      val first = page * table.rows
      val rows = joined(index).rows.slice(first, first + table.rowsOf(group, page))
      val inside = ordinals.map { ordinal =>
        if (ordinal >= first && ordinal < first + rows.length) ordinal - first else -1
      }
      BlockPart(new BlockJoin(source.block, new BlockRows(rows), inside), source.served, column)
    }
  }
}

private object PageLoader {
  private val Share = 4 // above this part of its pages, the whole column takes hardly longer
}
