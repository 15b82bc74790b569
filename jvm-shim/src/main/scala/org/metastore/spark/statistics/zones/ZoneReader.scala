package org.metastore.spark.statistics.zones

import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.columns.{BlockColumn, BlockColumnLoader, BlockReader}
import org.metastore.spark.statistics.objects.{Block, ObjectReader, ObjectRef, RowGroup}

/** Reads the parts of large blocks beside whole columns: zones, single pages, and identities of zones. */
private[statistics] final class ZoneReader(objects: ObjectReader) {
  import ZoneReader._

  /** Reads columns of zones as `BlockReader.readColumns` reads those of files. */
  def readZones(block: Block, ref: ObjectRef, group: Int): Map[Int, BlockColumn] =
    RowGroup.read(objects, ref, group, ZoneFields) { rows =>
      BlockReader.keepAll(ref, new BlockColumnLoader(block, rows, Zone.count(filesOf(block)), "zone"))
    }

  /**
   * The pages of a column: its row group and the table of pages, if that is all of the column, file by file.
   */
  def pages(block: Block, ref: ObjectRef, column: Int): Option[(Int, PageTable)] = {
    val footer = objects.footer(ref)
    footer.groupsOf(Set(column)) match {
      case Seq(group) if footer.rowGroups(group).rows == block.files.rows =>
        StatisticsCache.getOrLoad[Option[PageTable]](
          s"pages:${ref.name}:${ref.footerSha256}",
          _.fold(0L)(_.weight))(PageTable.fromFooter(footer))
          .map(group -> _)
      case _ => None
    }
  }

  /** One page of a column, by file: the first file is that of the page's first row. */
  def readPage(
      block: Block,
      ref: ObjectRef,
      column: Int,
      group: Int,
      table: PageTable,
      page: Int): BlockColumn =
    StatisticsCache.getOrLoad[BlockColumn](s"${BlockReader.columnKey(ref, column)}:$page", _.weight) {
      objects.asDamage(ref) {
        val footer = objects.footer(ref)
        val pages = objects.parts(ref, footer, table.chunks(group, page), table.digest(group, page))
        val rows = table.rowsOf(group, page)
        new BlockColumnLoader(block, new RowGroup(footer, rows, pages, page * table.rows), rows).load(column)
      }
    }

  /** The identities of a block's zones, if the list of its files has them. */
  def identities(block: Block): Option[ZoneIdentities] =
    StatisticsCache.getOrLoad[Option[ZoneIdentities]](
      s"identities:${block.files.name}:${block.files.footerSha256}",
      _.fold(0L)(_.weight)) {
      ZoneIdentities.fromFooter(objects.footer(block.files)).filter(_.zones == Zone.count(filesOf(block)))
    }

  private def filesOf(block: Block): Int = Math.toIntExact(block.files.rows)
}

private object ZoneReader {
  private val ZoneFields = Seq(
    "column",
    "zone",
    "rows",
    "nulls",
    "nans",
    "lo_long",
    "hi_long",
    "lo_double",
    "hi_double",
    "lo_binary",
    "hi_binary")
}
