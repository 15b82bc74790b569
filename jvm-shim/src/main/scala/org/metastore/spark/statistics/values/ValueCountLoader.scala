package org.metastore.spark.statistics.values

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{BlockJoin, TypePromotion}
import org.metastore.spark.statistics.objects.{Fill, ObjectRef, ParquetFooter, Values}

/**
 * Loads lists of values and bloom filters of a column in some files of one scan: first their places, then the footers, then
 * the lists and filters, each side by side. It reads no more than planning may wait for.
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
      among: Array[Int],
      filters: Boolean): collection.Map[Int, FileValues] = {
    val found = mutable.HashMap.empty[Int, FileValues]
    val parts = locate(key, dataType, among, filters)
    val sizes = footersOf(parts)
    val allowance = new Allowance
    val reads = for {
      part <- parts
      read <- part.reads
      if allowance.take(read, sizes)
    } yield part -> read
    for (((part, read), lists) <- CacheEntry.readable(reads, budget)(_._2.lists))
      part.fill(found, read, lists)
    found
  }

  /** The places of the files' lists and filters; of files without any nothing else is read. */
  private def locate(key: String, dataType: DataType, among: Array[Int], filters: Boolean): Seq[BlockRead] = {
    val sources = for {
      (joined, ordinal) <- blocksWith(blocks, key, dataType)
      files = among.filter(joined.ordinals(_) >= 0)
      if files.nonEmpty
      summary <- joined.block.summaryOf(ordinal)
    } yield new BlockSource(joined, files, ordinal, summary)
    val kinds = if (filters) Seq(Lists, Blooms) else Seq(Lists)
    val wanted = for (source <- sources; kind <- kinds) yield source -> kind
    val read = CacheEntry.readable(wanted, budget) { case (source, kind) =>
      reader.details(source.joined.block, kind)
    }
    val details = read.toMap
    val known = for {
      source <- sources
      lists = details.getOrElse((source, Lists), source.noDetails)
      blooms = details.getOrElse((source, Blooms), source.noDetails)
      if source.hasSome(lists) || source.hasSome(blooms)
    } yield new BlockDetails(source, lists, blooms)
    for ((details, listed) <- CacheEntry.readable(known, budget)(_.source.counts))
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
      val place: Int,
      val lists: CacheEntry[ValueCountLists],
      val size: ParquetFooter => ReadSize)

  /** One column of one block, and the files that are asked about in it. */
  private final class BlockSource(
      val joined: BlockJoin,
      val files: Array[Int],
      val column: Int,
      summary: ObjectRef) {

    def noDetails: DetailObjects = DetailObjects.none(joined.rows.length)

    def counts: CacheEntry[Array[Long]] = reader.listedValueCounts(joined.block, column, summary)

    def hasSome(details: DetailObjects): Boolean = files.exists(i => details.place(joined.ordinals(i)) >= 0)
  }

  /** The objects that hold lists of values, and bloom filters, of the files of a source. */
  private final class BlockDetails(
      val source: BlockSource,
      val lists: DetailObjects,
      val blooms: DetailObjects)

  /** The reads of a source: lists of the files in which all values are listed, filters of the other files. */
  private final class BlockRead(objects: BlockDetails, dataType: DataType, listed: Array[Long]) {
    import objects.{blooms, lists, source}
    import source.{column, files, joined}

    private val (withList, withoutList) = files.map(joined.ordinals(_)).partition(listed(_) >= 0)

    val reads: Seq[ObjectRead] =
      objectsOf(lists, withList).map(readList) ++ objectsOf(blooms, withoutList).map(readBlooms)

    private def readList(place: Int): ObjectRead = {
      val ref = lists.objects(place)
      new ObjectRead(
        ref,
        isBloom = false,
        place,
        reader.lists(ref, column, dataType, counted),
        reader.sizeOfLists(_, column, dataType))
    }

    private def readBlooms(place: Int): ObjectRead = {
      val ref = blooms.objects(place)
      new ObjectRead(ref, isBloom = true, place, reader.blooms(ref, column), reader.sizeOfBlooms(_, column))
    }

    def fill(found: mutable.Map[Int, FileValues], read: ObjectRead, values: ValueCountLists): Unit = {
      val details = if (read.isBloom) blooms else lists
      for (i <- files) {
        val file = joined.ordinals(i)
        if (details.place(file) == read.place && (listed(file) < 0) == read.isBloom && !found.contains(i))
          values.read(details.inside(file), listed(file)).foreach(found(i) = _)
      }
    }
  }

  /** The rows and bytes that may still be read. */
  private final class Allowance {
    private var (rows, bytes) = (math.min(most, MostRows), MostBytes)

    def take(read: ObjectRead, footers: Map[ObjectRef, ParquetFooter]): Boolean =
      read.lists.find.isDefined || footers.get(read.ref).exists { footer =>
        // What is wrong with an object is said when it is read, and costs only what is in it.
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

  /** The blocks whose lists may have values of a column, with the column's ordinal. */
  def blocksWith(blocks: Seq[BlockJoin], key: String, dataType: DataType): Seq[(BlockJoin, Int)] =
    for {
      joined <- blocks
      if joined.block.computed == "full"
      (entry, ordinal) <- joined.block.columnsOf(key)
      if TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (joined, ordinal)

  /** The objects that hold details of some files of a block, by their places among its objects. */
  def objectsOf(details: DetailObjects, ordinals: Array[Int]): Seq[Int] =
    ordinals.map(details.place(_)).filter(_ >= 0).distinct.toSeq
}

/** Finds how often a value occurs in the files of one scan, where a list of values tells. */
private[statistics] final class ValueFrequencies(
    reader: ValueCountReader,
    blocks: Seq[BlockJoin],
    budget: Budget) {
  import ValueCountLoader.Lists

  def load(key: String, dataType: DataType, point: Values, among: Array[Int]): Array[Long] = {
    val found = Fill.longs(among.length, -1)
    val lists = for {
      (joined, ordinal) <- ValueCountLoader.blocksWith(blocks, key, dataType)
      (_, details) <- CacheEntry.readable(Seq(joined.block), budget)(reader.details(_, Lists))
      place <- ValueCountLoader.objectsOf(details, among.map(joined.ordinals(_)).filter(_ >= 0))
    } yield ListObject(joined, ordinal, details, place)
    val read = PlanningPool.runFor(lists, budget)(list =>
      reader.frequencies(list.ref, list.column, dataType, point))
    for {
      (list, Right(counts)) <- read
      i <- among.indices
    } {
      list.placeOf(among(i)).flatMap(counts.get).foreach(found(i) = _)
    }
    found
  }
}

/** One of the objects that hold lists of a column of a block. */
private final case class ListObject(joined: BlockJoin, column: Int, details: DetailObjects, place: Int) {
  def ref: ObjectRef = details.objects(place)

  /** The place in the object of a file of the scan; None where it has no list there. */
  def placeOf(file: Int): Option[Int] = {
    val ordinal = joined.ordinals(file)
    if (ordinal >= 0 && details.place(ordinal) == place) Some(details.inside(ordinal)) else None
  }
}
