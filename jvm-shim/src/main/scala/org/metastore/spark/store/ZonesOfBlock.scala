package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** The zones of one block as groups of a scan's files. */
private[store] final class ZonesOfBlock(joined: JoinedBlock, loader: ColumnLoader[BlockColumn]) extends FileGroups {
  private lazy val asFiles = new JoinedBlock(joined.block, new BlockRows(joined.counted.zones), Array.range(0, joined.counted.zones.length))

  override def length: Int = joined.counted.zones.length

  override def of(file: Int): Int = {
    val ordinal = joined.ordinals(file)
    if (ordinal < 0) -1 else ordinal / Zone.Files
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnZones] =
    loader.parts(Seq(asFiles), (key, dataType)).map(new ZoneAssembler(key, dataType, length).assemble(_))
}
