package org.metastore.spark.adapter

import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExprId, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

import org.metastore.spark.store.StatisticsCache
import org.metastore.spark.tables.HudiTable

/** What a file index of Hudi lists, and the data files in it. */
private[adapter] final class HudiListing(val directories: Seq[PartitionDirectory], val files: IndexedSeq[ScanFile])

/**
 * Listings that are kept: Hudi makes the directories of all file slices anew whenever it is asked, for estimates, for EXPLAIN
 * and when a query runs, though the slices themselves stay in its index until that is refreshed.
 */
private[adapter] object HudiListing {
  private val Kept = 32
  private val BytesOfFile = 1100L // its path alone, as Hadoop holds it, has 400
  private val counter = new AtomicLong

  /** What decides, beside an index, what it lists: values of partitions are read in the session's time zone. */
  private final case class ListingKey(filters: Set[Expression], zone: String, caseSensitive: Boolean)

  /** Where in the cache a listing is. */
  private final class Entry(index: FileIndex, slices: AnyRef, by: ListingKey) {
    private val (ofIndex, ofSlices) = (new WeakReference(index), new WeakReference(slices))
    private val key = s"listing:${counter.incrementAndGet()}"

    def is(index: FileIndex, slices: AnyRef, asked: ListingKey): Boolean =
      (ofIndex.get eq index) && (ofSlices.get eq slices) && by == asked

    def isLost: Boolean = ofIndex.get == null || ofSlices.get == null // scalastyle:ignore

    def listing: Option[HudiListing] = StatisticsCache.get[HudiListing](key)
    def keep(listing: HudiListing): Unit = StatisticsCache.put(key, listing, listing.files.length * BytesOfFile)
    def forget(): Unit = StatisticsCache.remove(key)
  }

  private var entries = Vector.empty[Entry]

  /** The listing of the partitions that satisfy filters: the one that is kept, or that which `list` makes. */
  def of(index: FileIndex, partitionFilters: Seq[Expression])(list: => HudiListing): HudiListing =
    HudiTable.slicesInMemory(index).filter(_ => partitionFilters.forall(isFixed)).fold(list) { slices =>
      val asked = ListingKey(partitionFilters.map(named).toSet, SQLConf.get.sessionLocalTimeZone, SQLConf.get.caseSensitiveAnalysis)
      val entry = entryOf(index, slices, asked)
      entry.listing.getOrElse {
        val made = list
        if (HudiTable.slicesInMemory(index).exists(_ eq slices)) entry.keep(made)
        made
      }
    }

  private def entryOf(index: FileIndex, slices: AnyRef, asked: ListingKey): Entry = synchronized {
    entries.find(_.is(index, slices, asked)).getOrElse {
      val entry = new Entry(index, slices, asked)
      val (lost, others) = entries.partition(_.isLost)
      (lost ++ others.drop(Kept - 1)).foreach(_.forget())
      entries = entry +: others.take(Kept - 1)
      entry
    }
  }

  private def isFixed(filter: Expression): Boolean =
    filter.deterministic && filter.find(_.isInstanceOf[PlanExpression[_]]).isEmpty

  // Each query gives columns other ids.
  private def named(filter: Expression): Expression = filter.transform {
    case column: AttributeReference => column.withExprId(ExprId(0)).withQualifier(Nil)
  }
}
