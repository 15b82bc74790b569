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
import org.apache.spark.sql.execution.datasources.{FileFormat, FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.pruning.{ScanDecision, WantedRows}
import org.metastore.spark.statistics.objects.Manifest

/** The files of a physical scan without those in which no row can match, or is wanted. Everything else is the delegate's. */
private[scan] final class PruningFileIndex(
    val delegate: FileIndex,
    table: FileScan,
    name: Option[TableIdentifier],
    statistics: Manifest,
    val wanted: Option[WantedRows],
    planner: ScanPlanner,
    val keys: Seq[JoinKeyValues] = Nil)
  extends FileIndex {
  import PruningFileIndex.isFixed

  private val resolver = table.resolver(statistics)

  private def fingerprint: String = statistics.fingerprint

  // A scan is listed for EXPLAIN and again when it runs, with the same filters.
  private val decided =
    new ConcurrentHashMap[
      (Seq[Expression], Seq[Expression], ScanRequest),
      (Seq[PartitionDirectory], ScanDecision)]

  /** The same files, and what sub-queries collect about them. */
  def withKeys(found: Seq[JoinKeyValues]): PruningFileIndex =
    new PruningFileIndex(delegate, table, name, statistics, wanted, planner, found)

  /** The same index as listeners of the table format recognise it. */
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
    // With keys of a join all is decided anew, while the query runs already.
    val chosen = ScanPlanner.recover(s"A scan of ${table.id.name}", Option.empty[Seq[PartitionDirectory]]) {
      val (listed, decision) = decide(partitionFilters, fixed, request(fixed, keys.nonEmpty))
      Some(FileScan.selectFiles(listed)(decision.survivors.get))
    }
    chosen.getOrElse(delegate.listFiles(partitionFilters, dataFilters))
  }

  /** What is decided for these filters; those that need a sub-query's answer choose among the partitions later. */
  def decision(scan: FileSourceScanExec): ScanDecision = {
    val fixed = scan.dataFilters.filter(isFixed)
    decide(scan.partitionFilters.filter(isFixed), fixed, request(fixed, JoinKeyFilter.isIn(scan)))._2
  }

  private def request(fixed: Seq[Expression], isJoined: Boolean) =
    ScanRequest(fixed.filterNot(table.hidesDeletedRows) ++ keys.flatMap(_.conjunct), wanted, isJoined)

  // Every partition filter goes to the delegate: nothing above the scan repeats it.
  private def decide(
      partitionFilters: Seq[Expression],
      data: Seq[Expression],
      request: ScanRequest): (Seq[PartitionDirectory], ScanDecision) =
    decided.computeIfAbsent(
      (partitionFilters, data, request),
      _ => {
        var last = Option.empty[(Seq[PartitionDirectory], ScanDecision)]
        def about(listed: Seq[PartitionDirectory]) =
          last.collect { case (same, known) if same eq listed => known }.getOrElse {
            val files =
              if (request.wanted.isEmpty) table.files(listed)
              else table.countRows(table.files(listed))
            def plan(files: IndexedSeq[ScanFile]) =
              planner.plan(table.id, files, request, resolver, table.live(delegate, name)).decision
            val first = plan(files)
            // Of a LIMIT, the rows of files that are read are counted on too.
            val relied =
              if (request.wanted.isEmpty) FileScan.selectFiles(listed)(!first.survivors.get(_))
              else listed
            val now = if (first.after < first.before) table.asNow(files, relied) else files
            val made = if (now eq files) first else plan(now)
            last = Some(listed -> made)
            made
          }
        val listed = FilePathFilter.by(data, table.list(delegate, statistics, partitionFilters, data)(about))
        (listed, about(listed))
      })

  override def equals(other: Any): Boolean = other match {
    case that: PruningFileIndex =>
      that.delegate == delegate && that.fingerprint == fingerprint && that.wanted == wanted
    case _ => false
  }

  override def hashCode: Int = 31 * delegate.hashCode + (fingerprint, wanted).hashCode
}

private[scan] object PruningFileIndex {

  // Spark shows filters with sub-queries at one time and not at another.
  def isFixed(filter: Expression): Boolean = filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty
}

/** Leaves out the data files that a query itself excludes by `_metadata.file_path`: Delta's own index lists them all. */
private[scan] object FilePathFilter {

  def by(filters: Seq[Expression], listed: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val ofPaths = filters.filter(f => f.deterministic && f.references.nonEmpty && f.references.forall(isPath))
    if (ofPaths.isEmpty) listed
    else Try {
      val predicate = Predicate.createInterpreted(ofPaths.map(bound).reduce(And(_, _)))
      listed.map(partition =>
        partition.copy(files = partition.files.filter { file =>
          predicate.eval(FileFormat.createMetadataInternalRow(
            InternalRow.empty,
            Seq(FileFormat.FILE_PATH),
            SparkPath.fromPath(file.getPath),
            file.getLen,
            file.getModificationTime))
        }))
    }.getOrElse(listed) // the query says what is wrong with its filter
  }

  private def bound(filter: Expression): Expression = filter.transform {
    case path: AttributeReference => BoundReference(0, path.dataType, nullable = false)
  }

  private def isPath(column: Expression): Boolean = column match {
    case FileSourceConstantMetadataAttribute(path) => path.name == FileFormat.FILE_PATH
    case _ => false
  }
}
