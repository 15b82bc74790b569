package org.metastore.spark.store

import java.security.PrivilegedExceptionAction

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation

import org.metastore.spark.explain.{Reason, ReasonCode}

/** The statistics of a table on any file system that Hadoop reads. */
private[store] final class HadoopStatisticsStore(folder: Path, conf: Configuration) extends StatisticsStore {
  private lazy val fs = folder.getFileSystem(conf)
  private lazy val objects = new ObjectReader(new StoreFolder(fs, folder, "objects"))
  private lazy val rowReader = new RowReader(objects)
  private lazy val rankReader = new RankReader(objects, rowReader)

  override def root: String = folder.toString

  override def manifest(): Option[Manifest] = new ManifestLog(new StoreFolder(fs, folder, "log")).newest()

  override def begin(tableUuid: String, limitMillis: Long, version: Option[String]): Long => Either[Reason, TableStatistics] = {
    val remembered = version.flatMap(v => StatisticsCache.get[Manifest](versionKey(v)))
    val manifest = remembered.fold(newest(limitMillis))(found => _ => Right(found))
    millis => known(tableUuid, new Budget(millis, root), manifest)
  }

  private def known(
      tableUuid: String, budget: Budget, manifest: Budget => Either[Reason, Manifest]): Either[Reason, TableStatistics] =
    try {
      manifest(budget).flatMap { found =>
        if (found.table.uuid == tableUuid)
          Right(new PlanningStatistics(
            new StatisticsReaders(
              new BlockReader(objects), new ZoneReader(objects), new ValueCountReader(objects), new ValueIndexReader(objects), new HistogramReader(objects),
              found, budget)))
        else Left(Reason(ReasonCode.OtherTable, "written" -> found.table.uuid, "read" -> tableUuid))
      }
    } catch { case scala.util.control.NonFatal(e) => Left(PlanningPool.explain(e, budget)) }

  /** The newest manifest, by a thread that may hang, and with the rights of this one. */
  private def newest(limitMillis: Long): Budget => Either[Reason, Manifest] = {
    val user = UserGroupInformation.getCurrentUser
    val reading: PrivilegedExceptionAction[Option[Manifest]] = () => manifest()
    val begun = PlanningPool.begin(Seq(() => user.doAs(reading)), root, limitMillis)
    budget => begun(budget).head.flatMap {
      case None => Left(Reason(ReasonCode.NoStatistics, "table" -> folder.getParent.toString))
      case Some(found) =>
        StatisticsCache.put(versionKey(found.fingerprint), found, weight = 0) // it counts where the log is cached
        Right(found)
    }
  }

  private def versionKey(fingerprint: String): String = s"version:$root:$fingerprint"

  override def dataFiles(block: Block): IndexedSeq[DataFileRow] =
    rowReader.rows(block.files)(ObjectRows.dataFile).sortBy(_.file)

  override def tableFiles(snapshot: Snapshot): IndexedSeq[TableFileRow] =
    rowReader.rows(snapshot.tableFiles)(ObjectRows.tableFile)

  override def tableSummary(snapshot: Snapshot): IndexedSeq[SummaryRow] =
    snapshot.summary.fold(IndexedSeq.empty[SummaryRow])(rowReader.rows(_)(ObjectRows.summary)).sortBy(_.column)

  override def tableSketches(snapshot: Snapshot): IndexedSeq[SketchRow] =
    snapshot.sketches.fold(IndexedSeq.empty[SketchRow])(rowReader.rows(_)(ObjectRows.sketch)).sortBy(_.column)

  override def summary(block: Block, columns: Option[Set[Int]], files: Option[Set[Int]]): IndexedSeq[SummaryRow] =
    block.summary.toIndexedSeq
      .filter(part => columns.forall(wanted => part.columns.exists(wanted)))
      .flatMap(part => rowReader.rows(part.ref, groupsOf(columns))(row => wanted(row, columns, files)))
      .sortBy(row => (row.column, row.file))

  override def sketches(ref: ObjectRef): IndexedSeq[SketchRow] = rowReader.rows(ref)(ObjectRows.sketch)

  override def values(ref: ObjectRef, column: Int, file: Option[Int], few: Boolean): IndexedSeq[ValueCount] =
    rowReader.rows(ref, footer => groupsOf(Some(Set(column)))(footer).filter(_ == 0 || !few)) { row =>
      if (isOf(row, column, file)) ObjectRows.value(row) else None
    }

  override def mostFrequent(ref: ObjectRef, file: Option[Int]): Map[Int, ValueCount] =
    rowReader.rows(ref, _ => Seq(0)) { row =>
      if (file.forall(row.int("file").contains)) ObjectRows.value(row).map(row.int("column").get -> _) else None
    }.reverse.toMap

  override def histogram(ref: ObjectRef, column: Int, file: Option[Int]): Option[HistogramRow] =
    rowReader.rows(ref, groupsOf(Some(Set(column)))) { row =>
      if (isOf(row, column, file)) Some(ObjectRows.histogram(row)) else None
    }.headOption

  override def histograms(ref: ObjectRef, file: Int): Map[Int, HistogramRow] =
    rowReader.rows(ref, groupsOf(None)) { row =>
      if (row.int("file").contains(file)) Some(row.int("column").get -> ObjectRows.histogram(row)) else None
    }.toMap

  override def quantiles(ranks: Seq[RanksRef], column: Int, probabilities: Seq[Double]): Option[Seq[Option[Any]]] =
    rankReader.quantiles(ranks, column, probabilities)

  override def listRanks(ranks: Seq[RanksRef], column: Int): Seq[(Any, Long)] = rankReader.all(ranks, column)

  private def isOf(row: ObjectRow, column: Int, file: Option[Int]): Boolean =
    row.int("column").contains(column) && file.forall(row.int("file").contains)

  private def wanted(row: ObjectRow, columns: Option[Set[Int]], files: Option[Set[Int]]): Option[SummaryRow] = {
    val taken = columns.forall(set => row.int("column").exists(set)) && files.forall(set => row.int("file").exists(set))
    if (taken) Some(ObjectRows.summary(row)) else None
  }

  private def groupsOf(columns: Option[Set[Int]])(footer: ParquetFooter): Seq[Int] =
    columns.fold[Seq[Int]](footer.rowGroups.indices)(footer.groupsOf)
}
