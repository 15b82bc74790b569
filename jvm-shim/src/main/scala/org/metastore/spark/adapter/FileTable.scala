package org.metastore.spark.adapter

import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}

import org.metastore.spark.explain.{LiveFiles, ScanDecision}
import org.metastore.spark.pruning.ColumnResolver
import org.metastore.spark.store.Manifest

/** A table that Spark reads as a file relation: its identity, and how its statistics name columns and files. */
private[adapter] trait FileScan {
  def id: TableId
  def root: Path

  /** Finds columns of the statistics by their names in queries. */
  def resolver(statistics: Manifest): ColumnResolver

  /** The same for estimates, which need not be of the very values that a scan returns. */
  def estimateResolver(statistics: Manifest): ColumnResolver = resolver(statistics)

  /** The snapshot that is read and those before it, newest first; none where there are no snapshots. */
  def lineage: Iterator[String] = Iterator.empty

  /** All data files of the snapshot that an index reads. */
  def live(index: FileIndex): LiveFiles

  /** The data files of a listing, in its order. */
  def files(listed: Seq[PartitionDirectory]): IndexedSeq[ScanFile]

  /**
   * The files that the table format leaves to us.
   *
   * @param decide what we decide about a listing
   */
  def list(index: FileIndex, statistics: Manifest, partitionFilters: Seq[Expression], dataFilters: Seq[Expression])(
      decide: Seq[PartitionDirectory] => ScanDecision): Seq[PartitionDirectory] = index.listFiles(partitionFilters, dataFilters)
}

private[adapter] object FileScan {

  /** The table behind the relation of a physical scan that was marked with its root; None where it is none that we know. */
  def at(relation: HadoopFsRelation, root: String, label: Option[String]): Option[FileScan] =
    DeltaScan.of(relation, label).orElse(HudiScan.of(relation, label)).orElse(ParquetScan.at(relation, root, label))

  /** Some files of a listing, by their place in it. */
  def selectFiles(listed: Seq[PartitionDirectory])(keep: Int => Boolean): Seq[PartitionDirectory] = {
    var file = -1
    val left = listed.map { partition =>
      partition.copy(files = partition.files.filter { _ => file += 1; keep(file) })
    }
    left.filter(_.files.nonEmpty)
  }

  /** The conjuncts that name nothing but some columns, given in lower case: by those of partitions Spark or Hudi chooses them. */
  def conjunctsOver(columns: Set[String], conjuncts: Seq[Expression]): Seq[Expression] = conjuncts.filter { c =>
    c.deterministic && !SubqueryExpression.hasSubquery(c) && c.references.nonEmpty &&
      c.references.forall(a => columns(a.name.toLowerCase(Locale.ROOT)))
  }
}
