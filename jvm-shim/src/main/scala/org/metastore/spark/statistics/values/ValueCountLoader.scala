package org.metastore.spark.statistics.values

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{BlockJoin, TypePromotion}
import org.metastore.spark.statistics.objects.{Fill, ObjectRef, ParquetFooter, Values}

/**
 * Loads lists of values and bloom filters of a column for some files of a scan: first the objects that hold
 * them, then footers, then lists and filters, each in parallel. It reads no more than planning may wait for.
 *
 * @param counted whether lists are loaded with the number of rows of each value, instead of for look-ups
 */
private[statistics] final class ValueCountLoader(
    reader: ValueCountReader,
    blocks: Seq[BlockJoin],
    budget: Budget,
    most: Long,
    counted: Boolean = false) {
  import ValueCountLoader._

  def load(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      filters: Boolean): collection.Map[Int, FileValues] = {
    val values = mutable.HashMap.empty[Int, FileValues]
    val parts = locate(key, dataType, selected, filters)
    val footers = footersOf(parts)
    val allowance = new Allowance
    val reads = for {
      part <- parts
      read <- part.reads
      if allowance.take(read, footers)
    } yield part -> read
    for (((part, read), lists) <- CacheEntry.readable(reads, budget)(_._2.lists))
      part.fill(values, read, lists)
    values
  }

  /** Finds the objects with the files' lists and filters. */
  private def locate(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      filters: Boolean): Seq[BlockRead] = {
    val sources = for {
      (joined, ordinal) <- blocksWith(blocks, key, dataType)
      files = selected.filter(joined.ordinals(_) >= 0)
      if files.nonEmpty
      summary <- joined.block.summaryOf(ordinal)
    } yield new BlockSource(joined, files, ordinal, summary)
    val kinds = if (filters) Seq(Lists, Blooms) else Seq(Lists)
    val pairs = for (source <- sources; kind <- kinds) yield source -> kind
    val read = CacheEntry.readable(pairs, budget) { case (source, kind) =>
      reader.details(source.joined.block, kind)
    }
    val details = read.toMap
    val located = for {
      source <- sources
      lists = details.getOrElse((source, Lists), source.noDetails)
      blooms = details.getOrElse((source, Blooms), source.noDetails)
      if source.hasSome(lists) || source.hasSome(blooms)
    } yield new BlockDetails(source, lists, blooms)
    for ((details, listed) <- CacheEntry.readable(located, budget)(_.source.counts))
      yield new BlockRead(details, dataType, listed)
  }

  private def footersOf(parts: Seq[BlockRead]): Map[ObjectRef, ParquetFooter] = {
    val unread = for {
      part <- parts
      read <- part.reads
      if read.lists.find.isEmpty
    } yield read.ref
    CacheEntry.readable(unread.distinct.take(MostObjects), budget)(reader.footer).toMap
  }

  /** Lists or bloom filters of one object. */
  private final class ObjectRead(
      val ref: ObjectRef,
      val isBloom: Boolean,
      val index: Int,
      val lists: CacheEntry[ValueCountLists],
      val size: ParquetFooter => ReadSize)

  /** One column of one block, and the selected files of the block. */
  private final class BlockSource(
      val joined: BlockJoin,
      val files: Array[Int],
      val column: Int,
      summary: ObjectRef) {

    def noDetails: DetailObjects = DetailObjects.none(joined.rows.length)

    def counts: CacheEntry[Array[Long]] = reader.listedValueCounts(joined.block, column, summary)

    def hasSome(details: DetailObjects): Boolean =
      files.exists(i => details.objectOf(joined.ordinals(i)) >= 0)
  }

  /** The objects with the lists of values and the bloom filters of a source's files. */
  private final class BlockDetails(
      val source: BlockSource,
      val lists: DetailObjects,
      val blooms: DetailObjects)

  /** The reads of a source: lists for files with all values listed, filters for the other files. */
  private final class BlockRead(objects: BlockDetails, dataType: DataType, listed: Array[Long]) {
    import objects.{blooms, lists, source}
    import source.{column, files, joined}

    private val (withList, withoutList) = files.map(joined.ordinals(_)).partition(listed(_) >= 0)

    val reads: Seq[ObjectRead] =
      objectsOf(lists, withList).map(readList) ++ objectsOf(blooms, withoutList).map(readBlooms)

    private def readList(index: Int): ObjectRead = {
      val ref = lists.objects(index)
      new ObjectRead(
        ref,
        isBloom = false,
        index,
        reader.lists(ref, column, dataType, counted),
        reader.sizeOfLists(_, column, dataType))
    }

    private def readBlooms(index: Int): ObjectRead = {
      val ref = blooms.objects(index)
      new ObjectRead(ref, isBloom = true, index, reader.blooms(ref, column), reader.sizeOfBlooms(_, column))
    }

    /** Adds the values of the files that a read has brought. */
    def fill(values: mutable.Map[Int, FileValues], read: ObjectRead, loaded: ValueCountLists): Unit = {
      val details = if (read.isBloom) blooms else lists
      for (i <- files) {
        val file = joined.ordinals(i)
        val isRead = details.objectOf(file) == read.index && (listed(file) < 0) == read.isBloom
        if (isRead && !values.contains(i))
          values ++= loaded.read(details.ordinalOf(file), listed(file)).map(i -> _)
      }
    }
  }

  /** The rows and bytes that may still be read. */
  private final class Allowance {
    private var (rows, bytes) = (math.min(most, MostRows), MostBytes)

    def take(read: ObjectRead, footers: Map[ObjectRef, ParquetFooter]): Boolean =
      read.lists.find.isDefined || footers.get(read.ref).exists { footer =>
        // A damaged object counts as empty here: reading it reports the damage.
        val size = Try(read.size(footer)).getOrElse(ReadSize(0, 0))
        val fits = size.rows <= rows && size.bytes <= bytes
        if (fits) {
          rows -= size.rows
          bytes -= size.bytes
        }
        fits
      }
  }
}

private object ValueCountLoader {
  // kinds of detail objects
  private[values] val Lists = "frequencies"
  private val Blooms = "sketches"

  private val MostObjects = 1024
  private val MostRows = 4L << 20
  private val MostBytes = 32L << 20

  /** The blocks that may have lists of a column's values, with the column's ordinal. */
  def blocksWith(blocks: Seq[BlockJoin], key: String, dataType: DataType): Seq[(BlockJoin, Int)] =
    for {
      joined <- blocks
      if joined.block.computed == "full"
      (entry, ordinal) <- joined.block.columnsOf(key)
      if TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (joined, ordinal)

  /** The indices of the objects with details of some files of a block. */
  def objectsOf(details: DetailObjects, ordinals: Array[Int]): Seq[Int] =
    ordinals.map(details.objectOf(_)).filter(_ >= 0).distinct.toSeq
}

/** Finds the number of rows with a value in the files of a scan, for files with a list of values. */
private[statistics] final class ValueFrequencies(
    reader: ValueCountReader,
    blocks: Seq[BlockJoin],
    budget: Budget) {
  import ValueCountLoader.Lists

  def load(key: String, dataType: DataType, point: Values, selected: Array[Int]): Array[Long] = {
    val frequencies = Fill.longs(selected.length, -1)
    val lists = for {
      (joined, ordinal) <- ValueCountLoader.blocksWith(blocks, key, dataType)
      (_, details) <- CacheEntry.readable(Seq(joined.block), budget)(reader.details(_, Lists))
      index <- ValueCountLoader.objectsOf(details, selected.map(joined.ordinals(_)).filter(_ >= 0))
    } yield ListObject(joined, ordinal, details, index)
    val read = PlanningPool.runFor(lists, budget)(list =>
      reader.frequencies(list.ref, list.column, dataType, point))
    for {
      (list, Right(counts)) <- read
      i <- selected.indices
      ordinal <- list.ordinalOf(selected(i))
      count <- counts.get(ordinal)
    } frequencies(i) = count
    frequencies
  }
}

/** One of the objects that hold lists of a column of a block. */
private final case class ListObject(joined: BlockJoin, column: Int, details: DetailObjects, index: Int) {
  def ref: ObjectRef = details.objects(index)

  /** The ordinal in the object of a file of the scan; None if the object has no list of the file. */
  def ordinalOf(file: Int): Option[Int] = {
    val inBlock = joined.ordinals(file)
    if (inBlock >= 0 && details.objectOf(inBlock) == index) Some(details.ordinalOf(inBlock)) else None
  }
}
