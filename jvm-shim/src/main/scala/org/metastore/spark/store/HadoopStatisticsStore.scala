package org.metastore.spark.store

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

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

  override def values(ref: ObjectRef, column: Int, file: Option[Int], few: Boolean): IndexedSeq[ValueRow] =
    rowReader.rows(ref, footer => groupsOf(Some(Set(column)))(footer).filter(_ == 0 || !few)) { row =>
      if (isOf(row, column, file)) RowsOfObjects.value(row) else None
    }

  override def tops(ref: ObjectRef, file: Option[Int]): Map[Int, ValueRow] =
    rowReader.rows(ref, _ => Seq(0)) { row =>
      if (file.forall(row.int("file").contains)) RowsOfObjects.value(row).map(row.int("column").get -> _) else None
    }.reverse.toMap

  override def histogram(ref: ObjectRef, column: Int, file: Option[Int]): Option[HistogramRow] =
    rowReader.rows(ref, groupsOf(Some(Set(column)))) { row =>
      if (isOf(row, column, file)) Some(RowsOfObjects.histogram(row)) else None
    }.headOption

  private def isOf(row: ObjectRow, column: Int, file: Option[Int]): Boolean =
    row.int("column").contains(column) && file.forall(row.int("file").contains)

  private def wanted(row: ObjectRow, columns: Option[Set[Int]], files: Option[Set[Int]]): Option[SummaryRow] = {
    val taken = columns.forall(set => row.int("column").exists(set)) && files.forall(set => row.int("file").exists(set))
    if (taken) Some(RowsOfObjects.summary(row)) else None
  }

  private def groupsOf(columns: Option[Set[Int]])(footer: VerifiedFooter): Seq[Int] =
    columns.fold[Seq[Int]](footer.rowGroups.indices)(footer.groupsOf)
}
