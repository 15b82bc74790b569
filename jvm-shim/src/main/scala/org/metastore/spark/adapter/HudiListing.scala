package org.metastore.spark.adapter

import java.lang.ref.{SoftReference, WeakReference}

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExprId, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.tables.HudiTable

/** What a file index of Hudi lists, and the data files in it. */
private[adapter] final class HudiListing(val directories: Seq[PartitionDirectory], val files: IndexedSeq[DataFile])

/**
 * Listings that are kept: Hudi makes the directories of all file slices anew whenever it is asked, for estimates, for EXPLAIN
 * and when a query runs, though the slices themselves stay in its index until that is refreshed.
 */
private[adapter] object HudiListing {
  private val Kept = 32

  /** What decides, beside an index, what it lists: values of partitions are read in the session's time zone. */
  private final case class Asked(filters: Set[Expression], zone: String, caseSensitive: Boolean)

  private final class Entry(index: FileIndex, slices: AnyRef, by: Asked, listing: HudiListing) {
    private val (ofIndex, ofSlices) = (new WeakReference(index), new WeakReference(slices))
    private val kept = new SoftReference(listing)

    def found(index: FileIndex, slices: AnyRef, asked: Asked): Option[HudiListing] =
      if ((ofIndex.get eq index) && (ofSlices.get eq slices) && by == asked) Option(kept.get) else None

    def isLost: Boolean = ofIndex.get == null || ofSlices.get == null || kept.get == null // scalastyle:ignore
  }

  private var entries = Vector.empty[Entry]

  /** The listing of the partitions that satisfy filters: the one that is kept, or that which `list` makes. */
  def of(index: FileIndex, partitionFilters: Seq[Expression])(list: => HudiListing): HudiListing =
    HudiTable.slicesInMemory(index).filter(_ => partitionFilters.forall(isFixed)).fold(list) { slices =>
      val asked = Asked(partitionFilters.map(named).toSet, SQLConf.get.sessionLocalTimeZone, SQLConf.get.caseSensitiveAnalysis)
      synchronized(entries.flatMap(_.found(index, slices, asked)).headOption).getOrElse {
        val made = list
        if (HudiTable.slicesInMemory(index).exists(_ eq slices)) keep(new Entry(index, slices, asked, made))
        made
      }
    }

  private def keep(entry: Entry): Unit = synchronized {
    entries = (entry +: entries.filterNot(_.isLost)).take(Kept)
  }

  private def isFixed(filter: Expression): Boolean =
    filter.deterministic && filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty

  // Each query gives columns other ids.
  private def named(filter: Expression): Expression = filter.transform {
    case column: AttributeReference => column.withExprId(ExprId(0)).withQualifier(Nil)
  }
}
