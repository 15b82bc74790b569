package org.metastore.spark.statistics.objects

/**
 * The statistics of some data files. Several blocks may describe one file; each of them is sound on its own.
 */
final case class Block(
    id: String,
    computed: String,
    columns: IndexedSeq[ColumnEntry],
    files: ObjectRef,
    summary: Seq[SummaryRef],
    zones: Seq[SummaryRef] = Nil) {
  private lazy val byKey = columns.zipWithIndex.groupBy(_._1.key)
  private lazy val byOrdinal = Block.byOrdinal(summary)
  private lazy val zonesByOrdinal = Block.byOrdinal(zones)

  /** The columns of that key, with their ordinals: more than one where the column had several types. */
  def columnsOf(key: String): Seq[(ColumnEntry, Int)] = byKey.getOrElse(key, Nil)

  /** The summary object that holds a column, if it has statistics. */
  def summaryOf(ordinal: Int): Option[ObjectRef] = byOrdinal.get(ordinal)

  /** The object that holds a column's zones, if it has them. */
  def zonesOf(ordinal: Int): Option[ObjectRef] = zonesByOrdinal.get(ordinal)

  /** Compared by the object that lists its files: a block may have thousands of columns. */
  override def hashCode: Int = files.hashCode
}

private[statistics] object Block {
  private def byOrdinal(parts: Seq[SummaryRef]): Map[Int, ObjectRef] =
    parts.flatMap(part => part.columns.map(_ -> part.ref)).toMap
}
