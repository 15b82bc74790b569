package org.metastore.spark.scan

import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.{
  And, AttributeReference, BoundReference, Expression, FileSourceConstantMetadataAttribute, PlanExpression,
  Predicate
}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{
  FileFormat, FileIndex, FileStatusWithMetadata, PartitionDirectory
}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.pruning.{ScanDecision, WantedRows}
import org.metastore.spark.statistics.objects.Manifest

/**
 * Lists the files of a physical scan without those that have no matching row, or none that a LIMIT needs. The
 * delegate answers everything else.
 */
private[scan] final class PruningFileIndex(
    val delegate: FileIndex,
    table: FileScan,
    name: Option[TableIdentifier],
    statistics: Manifest,
    val wanted: Option[WantedRows],
    planner: ScanPlanner,
    val keys: Seq[JoinKeyValues] = Nil)
  extends FileIndex {
  import PruningFileIndex.{isFixed, DecidedListing, ListingFilters}

  private val resolver = table.resolver(statistics)

  private def fingerprint: String = statistics.fingerprint

  // A scan is listed for EXPLAIN and again when it runs, with the same filters.
  private val decided = new ConcurrentHashMap[ListingFilters, DecidedListing]

  /** The index with the keys that sub-queries collect. */
  def withKeys(keys: Seq[JoinKeyValues]): PruningFileIndex =
    new PruningFileIndex(delegate, table, name, statistics, wanted, planner, keys)

  /** The index in the class that listeners of the table format recognize. */
  def recognizable: FileIndex = table.recognizable(this)

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = delegate.inputFiles
  override def sizeInBytes: Long = delegate.sizeInBytes
  override def partitionSchema: StructType = delegate.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = delegate.metadataOpsTimeNs

  override def refresh(): Unit = {
    decided.clear()
    delegate.refresh()
  }

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val fixed = dataFilters.filter(isFixed)
    // With keys of a join, files are decided again when the query runs.
    val pruned = ScanPlanner.recover(s"A scan of ${table.id.name}", Option.empty[Seq[PartitionDirectory]]) {
      val decided = decide(partitionFilters, fixed, request(fixed, keys.nonEmpty))
      Some(FileScan.selectFiles(decided.directories)(decided.decision.survivors.get))
    }
    pruned.getOrElse(delegate.listFiles(partitionFilters, dataFilters))
  }

  /** The decision for a scan's filters. Filters with a sub-query choose among the partitions later. */
  def decision(scan: FileSourceScanExec): ScanDecision = {
    val fixed = scan.dataFilters.filter(isFixed)
    decide(
      scan.partitionFilters.filter(isFixed),
      fixed,
      request(fixed, JoinKeyFilter.isIn(scan))).decision
  }

  private def request(fixed: Seq[Expression], isJoined: Boolean) =
    ScanRequest(fixed.filterNot(table.hidesDeletedRows) ++ keys.flatMap(_.conjunct), wanted, isJoined)

  // The delegate gets every partition filter: nothing above the scan repeats it.
  private def decide(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      request: ScanRequest): DecidedListing =
    decided.computeIfAbsent(
      ListingFilters(partitionFilters, dataFilters, request),
      _ => {
        val decisions = new LastDecision(request)
        val listed = table.list(delegate, statistics, partitionFilters, dataFilters)(decisions.on)
        val selected = FilePathFilter.by(dataFilters, listed)
        DecidedListing(selected, decisions.on(selected))
      })

  /** Decides on listings; a listing that follows itself is decided once. */
  private final class LastDecision(request: ScanRequest) {
    private var last = Option.empty[DecidedListing]

    def on(listed: Seq[PartitionDirectory]): ScanDecision = last match {
      case Some(previous) if previous.directories eq listed => previous.decision
      case _ =>
        val decision = decideOn(listed, request)
        last = Some(DecidedListing(listed, decision))
        decision
    }
  }

  private def decideOn(listed: Seq[PartitionDirectory], request: ScanRequest): ScanDecision = {
    val isLimited = request.wanted.isDefined
    val files = if (isLimited) table.countRows(table.files(listed)) else table.files(listed)
    val decision = plan(files, request)
    // A LIMIT also relies on the rows of files that are read.
    val relevant = if (isLimited) listed else FileScan.selectFiles(listed)(!decision.survivors.get(_))
    val currentFiles = if (decision.after < decision.before) table.asNow(files, relevant) else files
    if (currentFiles eq files) decision else plan(currentFiles, request)
  }

  private def plan(files: IndexedSeq[ScanFile], request: ScanRequest): ScanDecision =
    planner.plan(ScannedFiles(table.id, files, resolver, table.live(delegate, name)), request).decision

  override def equals(other: Any): Boolean = other match {
    case that: PruningFileIndex =>
      that.delegate == delegate && that.fingerprint == fingerprint && that.wanted == wanted
    case _ => false
  }

  override def hashCode: Int = 31 * delegate.hashCode + (fingerprint, wanted).hashCode
}

private[scan] object PruningFileIndex {

  /** The filters of a listing, and the request behind them. */
  private final case class ListingFilters(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      request: ScanRequest)

  /** A listing, and the decision on its files. */
  private final case class DecidedListing(directories: Seq[PartitionDirectory], decision: ScanDecision)

  // Spark lists a scan sometimes with and sometimes without its filters that have sub-queries.
  def isFixed(filter: Expression): Boolean = filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty
}

/** Drops the data files that a query excludes by `_metadata.file_path`: Delta's own index lists them all. */
private[scan] object FilePathFilter {

  def by(filters: Seq[Expression], listed: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val pathFilters =
      filters.filter(f => f.deterministic && f.references.nonEmpty && f.references.forall(isPath))
    if (pathFilters.isEmpty) listed
    else Try {
      val predicate = Predicate.createInterpreted(pathFilters.map(bound).reduce(And(_, _)))
      listed.map(partition =>
        partition.copy(files = partition.files.filter(file => predicate.eval(metadataOf(file)))))
    }.getOrElse(listed) // the query itself reports what is wrong with its filter
  }

  private def metadataOf(file: FileStatusWithMetadata): InternalRow = FileFormat.createMetadataInternalRow(
    InternalRow.empty,
    Seq(FileFormat.FILE_PATH),
    SparkPath.fromPath(file.getPath),
    file.getLen,
    file.getModificationTime)

  private def bound(filter: Expression): Expression = filter.transform {
    case path: AttributeReference => BoundReference(0, path.dataType, nullable = false)
  }

  private def isPath(column: Expression): Boolean = column match {
    case FileSourceConstantMetadataAttribute(path) => path.name == FileFormat.FILE_PATH
    case _ => false
  }
}
