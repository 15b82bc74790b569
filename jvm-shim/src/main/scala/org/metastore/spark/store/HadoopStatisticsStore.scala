package org.metastore.spark.store

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.column.statistics.IntStatistics

import org.metastore.spark.explain.{Reason, ReasonCode}

private object HadoopStatisticsStore {
  private val DecodedRows = 8 // their size as a multiple of the object's
}

/** The statistics of a table on any file system that Hadoop reads. */
private[store] final class HadoopStatisticsStore(folder: Path, conf: Configuration) extends StatisticsStore {
  import HadoopStatisticsStore._
  private lazy val fs = folder.getFileSystem(conf) // of the caller's thread: it carries the user's rights
  private lazy val objects = new ObjectReader(fs, new Path(folder, "objects"))
  private lazy val rowReader = new RowReader(objects)

  override def root: String = folder.toString

  override def manifest(): Option[Manifest] = new ManifestLog(fs, new Path(folder, "log")).newest()

  override def planning(tableUuid: String, limitMillis: Long): Either[Reason, TableStatistics] = {
    val budget = new Budget(limitMillis)
    try {
      fs.getScheme
      PlanningPool.run(Seq(() => manifest()), budget).head.flatMap {
        case None => Left(Reason(ReasonCode.NoStatistics, "table" -> folder.getParent.toString))
        case Some(found) if found.table.uuid != tableUuid =>
          Left(Reason(ReasonCode.OtherTable, "written" -> found.table.uuid, "read" -> tableUuid))
        case Some(found) => Right(new PlanningStatistics(new BlockReader(objects), found, budget))
      }
    } catch { case scala.util.control.NonFatal(e) => Left(PlanningPool.explained(e, budget)) }
  }

  override def dataFiles(block: Block): IndexedSeq[DataFileRow] =
    rowReader.rows(block.files)(RowsOfObjects.dataFile).sortBy(_.file)

  override def tableFiles(snapshot: Snapshot): IndexedSeq[TableFileRow] =
    rowReader.rows(snapshot.tableFiles)(RowsOfObjects.tableFile)

  override def tableSummary(snapshot: Snapshot): IndexedSeq[SummaryRow] =
    snapshot.summary.fold(IndexedSeq.empty[SummaryRow])(rowReader.rows(_)(RowsOfObjects.summary)).sortBy(_.column)

  override def planningSummary(snapshot: Snapshot): IndexedSeq[SummaryRow] =
    snapshot.summary.fold(IndexedSeq.empty[SummaryRow]) { ref =>
      StatisticsCache.getOrLoad[IndexedSeq[SummaryRow]](s"rows:${ref.name}:${ref.sha256}", _ => ref.length * DecodedRows) {
        tableSummary(snapshot)
      }
    }

  override def tableSketches(snapshot: Snapshot): IndexedSeq[SketchRow] =
    snapshot.sketches.fold(IndexedSeq.empty[SketchRow])(rowReader.rows(_)(RowsOfObjects.sketch)).sortBy(_.column)

  override def summary(block: Block, columns: Option[Set[Int]], files: Option[Set[Int]]): IndexedSeq[SummaryRow] =
    block.summary.toIndexedSeq
      .filter(part => columns.forall(wanted => part.columns.exists(wanted)))
      .flatMap(part => rowReader.rows(part.ref, groupsOf(columns))(row => wanted(row, columns, files)))
      .sortBy(row => (row.column, row.file))

  override def sketches(ref: ObjectRef): IndexedSeq[SketchRow] = rowReader.rows(ref)(RowsOfObjects.sketch)

  private def wanted(row: ObjectRow, columns: Option[Set[Int]], files: Option[Set[Int]]): Option[SummaryRow] = {
    val taken = columns.forall(set => row.int("column").exists(set)) && files.forall(set => row.int("file").exists(set))
    if (taken) Some(RowsOfObjects.summary(row)) else None
  }

  private def groupsOf(columns: Option[Set[Int]])(footer: VerifiedFooter): Seq[Int] =
    (0 until footer.rowGroups.size).filter { group =>
      (columns, footer.chunk(group, footer.leavesOf(Set("column")).head).getStatistics) match {
        case (Some(wanted), range: IntStatistics) if range.hasNonNullValue =>
          wanted.exists(c => range.getMin <= c && c <= range.getMax)
        case _ => true
      }
    }
}
