package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** The zones of one block as groups of a scan's files. */
private[store] final class ZoneGroups(joined: BlockJoin, loader: ColumnLoader[BlockColumn]) extends FileGroupStatistics {
  private lazy val asFiles = new BlockJoin(joined.block, new BlockRows(joined.counted.zones), Array.range(0, joined.counted.zones.length))

  override def length: Int = joined.counted.zones.length

  override def of(file: Int): Int = {
    val ordinal = joined.ordinals(file)
    if (ordinal < 0) -1 else ordinal / Zone.Files
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    loader.parts(Seq(asFiles), (key, dataType)).map(new SummaryAssembler(key, dataType, length).assemble(_))
}
