package org.metastore.spark.scan

import java.util.BitSet

import org.apache.spark.sql.catalyst.expressions.{Expression, InSet, Literal}
import org.apache.spark.sql.types.{DoubleType, FloatType}

import org.metastore.spark.pruning.{ConjunctText, DeletedRows, FileSets, PruningFilter, ScanDecision}
import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.columns.{Bounds, FileSetStatistics, LongBounds}
import org.metastore.spark.statistics.objects.DoubleOrder

/** The files of a scan with their statistics, and the scan's filter. */
private[scan] final class JoinedFiles(
    val scan: ScannedFiles,
    val filter: PruningFilter,
    val statistics: FileSetStatistics) {
  import scan.files

  lazy val verdict: ScanDecision.Verdict =
    ScanDecision.Verdict(filter.evaluate(statistics), filter.conjuncts.map(ConjunctText(_)))

  /** The files that pass a test. */
  def where(test: Int => Boolean): BitSet = FileSets.where(files.length)(test)

  def deletedRows(file: Int): DeletedRows = files(file).deleted

  /** The rows of each file as the table format counts them, else as the statistics do; -1: unknown. */
  lazy val rows: Array[Long] = {
    val listed = scan.listedRows
    Array.tabulate(listed.length)(i => if (listed(i) >= 0) listed(i) else statistics.rows(i))
  }

  /** The rows of these files, by file; -1: unknown. */
  def rowsOf(selected: BitSet): Map[Int, Long] = Indexed.entries(selected.stream.toArray) { file =>
    file -> files(file).rows.getOrElse(statistics.rows(file))
  }

  /** Files whose row count in the table format differs from that in the statistics. */
  lazy val contradictoryFiles: BitSet = {
    val listed = scan.listedRows
    where(i => listed(i) >= 0 && statistics.rows(i) >= 0 && listed(i) != statistics.rows(i))
  }

  /**
   * The files whose live rows all match, if the number of deleted rows is known. If the format counts rows,
   * the statistics must have the same count.
   */
  def matchingFiles: BitSet = {
    val matching = filter.allRowsMatch(statistics)
    where { i =>
      matching.get(i) && files(i).deleted.isKnown && !files(i).hasChanges && statistics.rows(i) >= 0 &&
      files(i).rows.forall(_ == statistics.rows(i))
    }
  }

  /** The matching files whose live rows every reader returns. */
  def filesToCount: BitSet =
    if (filter.conjuncts.exists(JoinedFiles.namesZero)) FileSets.without(matchingFiles, filesWithZeros)
    else matchingFiles

  // Readers of Parquet distinguish the zeros, and lose rows with the zero that the filter does not name.
  private def filesWithZeros: BitSet = {
    val doubles = filter.columns.filter(use => use.dataType == FloatType || use.dataType == DoubleType)
    val summaries = doubles.map(use => statistics.column(use.key, use.dataType))
    where { file =>
      summaries.exists {
        case Right(summary) => JoinedFiles.mayHoldZero(summary.bounds, file)
        case Left(_) => true
      }
    }
  }
}

private object JoinedFiles {

  private def namesZero(conjunct: Expression): Boolean = conjunct.exists {
    case Literal(value, _) => DoubleOrder.isZero(value)
    case InSet(_, values) => values.exists(DoubleOrder.isZero)
    case _ => false
  }

  private def mayHoldZero(bounds: Bounds, file: Int): Boolean = bounds match {
    case bounds: LongBounds if bounds.hasBoth(file) =>
      bounds.lo(file) <= DoubleOrder.Zero && bounds.hi(file) >= DoubleOrder.Zero
    case _ => true
  }
}
