package org.metastore.spark.statistics.values

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.types.DataType

import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{BlockJoin, TypePromotion}
import org.metastore.spark.statistics.objects.{Fill, ObjectRef, ParquetFooter, Values}

/**
 * Finds out what is known of single values of a column in some files of one scan: first where it stands, then the footers,
 * then lists and bloom filters, each side by side. It reads no more than planning may wait for.
 *
 * @param counted whether lists are to tell how often each value occurs, instead of being looked up
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
    val loaded = CacheEntry.all(reads.map(_._2.lists), budget)
    for (((part, read), Right(lists)) <- reads.zip(loaded))
      part.fill(found, read, lists)
    found
  }

  /** Where the details of the files are; of files without any nothing else is read. */
  private def locate(key: String, dataType: DataType, among: Array[Int], filters: Boolean): Seq[BlockRead] = {
    val sources = for {
      joined <- blocks
      if joined.block.computed == "full"
      files = among.filter(joined.ordinals(_) >= 0)
      if files.nonEmpty
      (entry, ordinal) <- joined.block.columnsOf(key)
      if TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
      summary <- joined.block.summaryOf(ordinal)
    } yield new BlockSource(joined, files, ordinal, summary)
    val kinds = if (filters) Seq("frequencies", "sketches") else Seq("frequencies")
    val details =
      CacheEntry.all(sources.flatMap(source => kinds.map(reader.details(source.joined.block, _))), budget)
    val known = for {
      (source, found) <- sources.zip(details.grouped(kinds.size).toSeq)
      lists = found.head.toOption
      blooms = found.drop(1).lastOption.flatMap(_.toOption)
      if source.hasSome(lists) || source.hasSome(blooms)
    } yield (source, lists, blooms)
    val counts = CacheEntry.all(known.map(_._1.counts), budget)
    for (((source, lists, blooms), Right(listed)) <- known.zip(counts))
      yield new BlockRead(source, dataType, listed, lists, blooms)
  }

  private def footersOf(parts: Seq[BlockRead]): Map[ObjectRef, ParquetFooter] = {
    val unread = for {
      part <- parts
      read <- part.reads
      if read.lists.find.isEmpty
    } yield read.ref
    val refs = unread.distinct.take(MostObjects)
    val footers = CacheEntry.all(refs.map(reader.footer), budget)
    val known = for ((ref, Right(footer)) <- refs.zip(footers)) yield ref -> footer
    known.toMap
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
    def counts: CacheEntry[Array[Long]] = reader.listedValueCounts(joined.block, column, summary)

    def hasSome(details: Option[DetailObjects]): Boolean =
      details.exists(d => files.exists(i => d.place(joined.ordinals(i)) >= 0))
  }

  /** What is read of a source: where all values are listed the list, else the filter. */
  private final class BlockRead(
      source: BlockSource,
      dataType: DataType,
      listed: Array[Long],
      lists: Option[DetailObjects],
      blooms: Option[DetailObjects]) {
    import source.{column, files, joined}

    private val (withList, withoutList) = files.map(joined.ordinals(_)).partition(listed(_) >= 0)

    val reads: Seq[ObjectRead] = listReads ++ bloomReads

    private def listReads: Seq[ObjectRead] =
      for {
        details <- lists.toSeq
        place <- objectsOf(details, withList)
      } yield {
        val ref = details.objects(place)
        new ObjectRead(
          ref,
          isBloom = false,
          place,
          reader.lists(ref, column, dataType, counted),
          reader.sizeOfLists(_, column, dataType))
      }

    private def bloomReads: Seq[ObjectRead] =
      for {
        details <- blooms.toSeq
        place <- objectsOf(details, withoutList)
      } yield {
        val ref = details.objects(place)
        new ObjectRead(
          ref,
          isBloom = true,
          place,
          reader.blooms(ref, column),
          reader.sizeOfBlooms(_, column))
      }

    def fill(found: mutable.Map[Int, FileValues], read: ObjectRead, values: ValueCountLists): Unit = {
      val details = if (read.isBloom) blooms.get else lists.get
      for (i <- files) {
        val file = joined.ordinals(i)
        if (details.place(file) == read.place && (listed(file) < 0) == read.isBloom && !found.contains(i))
          Option(values.read(details.inside(file), listed(file))).foreach(found(i) = _)
      }
    }
  }

  /** What may still be read. */
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
  private val MostObjects = 1024
  private val MostRows = 4L << 20
  private val MostBytes = 32L << 20

  /** The objects that hold details of some files of a block, by their places among its objects. */
  def objectsOf(details: DetailObjects, ordinals: Array[Int]): Seq[Int] =
    ordinals.map(details.place(_)).filter(_ >= 0).distinct.toSeq
}

/** Finds how often a value occurs in the files of one scan, where a list of values tells. */
private[statistics] final class ValueFrequencies(
    reader: ValueCountReader,
    blocks: Seq[BlockJoin],
    budget: Budget) {

  def load(key: String, dataType: DataType, point: Values, among: Array[Int]): Array[Long] = {
    val found = Fill.longs(among.length, -1)
    val reads = for {
      joined <- blocks if joined.block.computed == "full"
      (entry, ordinal) <- joined.block.columnsOf(key)
      if TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
      details <- CacheEntry.all(Seq(reader.details(joined.block, "frequencies")), budget).flatMap(_.toOption)
      place <- ValueCountLoader.objectsOf(details, among.map(joined.ordinals(_)).filter(_ >= 0))
    } yield (
      joined,
      details,
      place,
      () => reader.frequencies(details.objects(place), ordinal, dataType, point))
    for {
      ((joined, details, place, _), Right(counts)) <- reads.zip(PlanningPool.run(reads.map(_._4), budget))
      i <- among.indices
    } {
      val file = joined.ordinals(among(i))
      if (file >= 0 && details.place(file) == place)
        counts.get(details.inside(file)).foreach(found(i) = _)
    }
    found
  }
}
