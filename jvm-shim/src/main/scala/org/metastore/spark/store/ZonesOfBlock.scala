package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** The zones of one block as groups of a scan's files. */
private[store] final class ZoneGroups(joined: BlockJoin, loader: ColumnLoader[BlockColumn]) extends FileGroupStatistics {
  private lazy val asFiles = {
    val files = joined.block.files
    val rows = StatisticsCache.getOrLoad[Array[Long]](s"zone-rows:${files.name}:${files.footerSha256}", _.length * 8L)(Zone.rows(joined.rows))
    new BlockJoin(joined.block, new BlockRows(rows), Array.range(0, length))
  }

  override def length: Int = Zone.count(joined.rows.length)

  override def of(file: Int): Int = {
    val ordinal = joined.ordinals(file)
    if (ordinal < 0) -1 else ordinal / Zone.Files
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    loader.parts(Seq(asFiles), (key, dataType)).map(new SummaryAssembler(key, dataType, length).assemble(_))
}
