package org.metastore.spark.statistics.objects

/**
 * The table level of one analyzed snapshot.
 *
 * @param columns those of the schema, then expressions over them that have statistics
 * @param rows live rows, `None` where other files change rows; `physicalRows` counts deleted rows too
 */
final case class Snapshot(
    id: String,
    analyzedAt: String,
    computed: String,
    exact: Boolean,
    columns: IndexedSeq[ColumnEntry],
    files: Long,
    filesTotal: Long,
    rows: Option[Long],
    physicalRows: Option[Long],
    sizeBytes: Long,
    liveSizeBytes: Option[Long],
    tableFiles: ObjectRef,
    summary: Option[ObjectRef],
    sketches: Option[ObjectRef],
    frequencies: Seq[SummaryRef] = Nil,
    histograms: Option[ObjectRef] = None,
    ranks: Seq[RanksRef] = Nil,
    distribution: Seq[Int] = Nil,
    placed: Option[ObjectRef] = None) {

  /** The objects that list values of a column. */
  def frequenciesOf(column: Int): Seq[SummaryRef] = frequencies.filter(_.columns.contains(column))

  /** Whether only counts of a column are stored, no values. */
  def isOnlyCounted(key: String): Boolean =
    columns.exists(column => column.key == key && column.encoding.isEmpty)

  /** The SQL of the expressions that have statistics, by their keys. */
  lazy val expressions: Map[String, String] = ColumnEntry.expressionsAmong(columns.iterator)
}
