package org.metastore.spark.adapter

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

import org.metastore.spark.explain.ScanDecision
import org.metastore.spark.store.Manifest

/** The files of a physical scan without those in which no row can match. Everything else is the delegate's. */
private[adapter] final class PruningFileIndex(
    val delegate: FileIndex, table: FileScan, statistics: Manifest, planner: ScanPlanner) extends FileIndex {

  private val resolver = table.resolver(statistics)

  private def fingerprint: String = statistics.fingerprint

  // A scan is listed for EXPLAIN and again when it runs, with the same filters.
  private val decided = new ConcurrentHashMap[(Seq[Expression], Seq[Expression]), (Seq[PartitionDirectory], ScanDecision)]

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = delegate.inputFiles
  override def sizeInBytes: Long = delegate.sizeInBytes
  override def partitionSchema: StructType = delegate.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = delegate.metadataOpsTimeNs

  override def refresh(): Unit = {
    decided.clear()
    delegate.refresh()
  }

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val (listed, decision) = decide(partitionFilters, dataFilters.filter(isFixed))
    FileScan.selectFiles(listed)(decision.survivors.get)
  }

  /** What is decided for these filters; those that need a sub-query's answer choose among the partitions later. */
  def decision(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): ScanDecision =
    decide(partitionFilters.filter(isFixed), dataFilters.filter(isFixed))._2

  // Every partition filter goes to the delegate: nothing above the scan repeats it.
  private def decide(partitionFilters: Seq[Expression], data: Seq[Expression]): (Seq[PartitionDirectory], ScanDecision) =
    decided.computeIfAbsent((partitionFilters, data), _ => {
      var last = Option.empty[(Seq[PartitionDirectory], ScanDecision)]
      def about(listed: Seq[PartitionDirectory]) = last.collect { case (same, known) if same eq listed => known }.getOrElse {
        val made = planner.plan(table.id, table.files(listed), data, resolver, table.live(delegate)).decision
        last = Some(listed -> made)
        made
      }
      val listed = FilePathFilter.by(data, table.list(delegate, statistics, partitionFilters, data)(about))
      (listed, about(listed))
    })

  // Spark shows filters with sub-queries at one time and not at another.
  private def isFixed(filter: Expression): Boolean = filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty

  override def equals(other: Any): Boolean = other match {
    case that: PruningFileIndex => that.delegate == delegate && that.fingerprint == fingerprint
    case _ => false
  }

  override def hashCode: Int = 31 * delegate.hashCode + fingerprint.hashCode
}
