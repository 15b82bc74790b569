package org.metastore.spark.store

import org.apache.spark.sql.types.DataType

/**
 * Finds out what is known of single values of a column in some files of one scan: first where it stands, then the footers,
 * then lists and bloom filters, each side by side. It reads no more than planning may wait for.
 */
private[store] final class ValueLoader(reader: ValueReader, blocks: Seq[JoinedBlock], budget: Budget) {
  import ValueLoader._

  /**
   * @param among   the files that are asked about
   * @param filters whether bloom filters are of use too
   * @return by file; null where nothing is known
   */
  def load(key: String, dataType: DataType, among: Array[Boolean], filters: Boolean): Array[FileValues] = {
    val found = new Array[FileValues](among.length)
    val parts = located(key, dataType, among, filters)
    val sizes = footersOf(parts)
    val allowance = new Allowance
    val (reads, wanted) = parts.flatMap(part => part.reads.filter(read => allowance.take(read, sizes)).map(_ -> part)).unzip
    for (((read, part), Right(lists)) <- reads.zip(wanted).zip(Cached.all(reads.map(_.lists), budget))) part.fill(found, read, lists)
    found
  }

  private def located(key: String, dataType: DataType, among: Array[Boolean], filters: Boolean): Seq[Part] = {
    val sources = for {
      joined <- blocks
      if joined.block.computed == "full" && among.indices.exists(i => among(i) && joined.ordinals(i) >= 0)
      (entry, ordinal) <- joined.block.columnsOf(key)
      if ServedType.of(entry, dataType) == ServedType.Full
      summary <- joined.block.summaryOf(ordinal)
    } yield (joined, ordinal, summary)
    val counts = Cached.all(sources.map { case (joined, ordinal, summary) => reader.counts(joined.block, ordinal, summary) }, budget)
    def details(kind: String) = Cached.all(sources.map(source => reader.details(source._1.block, kind)), budget)
    val (lists, blooms) = (details("frequencies"), if (filters) details("sketches") else Nil)
    sources.indices.flatMap { i =>
      for (listed <- counts(i).toOption) yield {
        val (joined, ordinal, _) = sources(i)
        new Part(
          joined, ordinal, dataType, among, listed, lists(i).toOption, blooms.lift(i).flatMap(_.toOption))
      }
    }
  }

  private def footersOf(parts: Seq[Part]): Map[ObjectRef, VerifiedFooter] = {
    val refs = parts.flatMap(_.reads).filter(_.lists.now.isEmpty).map(_.ref).distinct.take(MostObjects)
    refs.zip(Cached.all(refs.map(reader.footer), budget)).collect { case (ref, Right(footer)) => ref -> footer }.toMap
  }

  /** Lists or bloom filters of one object. */
  private final class Read(
      val ref: ObjectRef, val isBloom: Boolean, val place: Int, val lists: Cached[ValueLists], val size: VerifiedFooter => ReadSize)

  /** One column of one block. */
  private final class Part(
      joined: JoinedBlock, column: Int, dataType: DataType, among: Array[Boolean], listed: Array[Long],
      lists: Option[DetailFiles], blooms: Option[DetailFiles]) {

    /** What has to be read: where all values are listed the list, else the filter. */
    val reads: Seq[Read] =
      lists.toSeq.flatMap(details => objectsOf(details, listed(_) >= 0).map { place =>
        val ref = details.objects(place)
        new Read(ref, false, place, reader.lists(ref, column, dataType), reader.sizeOfLists(_, column, dataType))
      }) ++ blooms.toSeq.flatMap(details => objectsOf(details, listed(_) < 0).map { place =>
        val ref = details.objects(place)
        new Read(ref, true, place, reader.blooms(ref, column), reader.sizeOfBlooms(_, column))
      })

    def fill(found: Array[FileValues], read: Read, values: ValueLists): Unit = {
      val details = if (read.isBloom) blooms.get else lists.get
      among.indices.foreach { i =>
        val file = joined.ordinals(i)
        if (among(i) && file >= 0 && details.place(file) == read.place && found(i) == null && (listed(file) < 0) == read.isBloom)
          found(i) = values.of(details.inside(file), listed(file))
      }
    }

    private def objectsOf(details: DetailFiles, isWanted: Int => Boolean): Seq[Int] = {
      val needed = new java.util.BitSet()
      among.indices.foreach { i =>
        val file = joined.ordinals(i)
        if (among(i) && file >= 0 && isWanted(file) && details.place(file) >= 0) needed.set(details.place(file))
      }
      Iterator.iterate(needed.nextSetBit(0))(place => needed.nextSetBit(place + 1)).takeWhile(_ >= 0).toSeq
    }
  }

  /** What may still be read. */
  private final class Allowance {
    private var (rows, bytes) = (MostRows, MostBytes)

    def take(read: Read, footers: Map[ObjectRef, VerifiedFooter]): Boolean =
      read.lists.now.isDefined || footers.get(read.ref).exists { footer =>
        val size = read.size(footer)
        val fits = size.rows <= rows && size.bytes <= bytes
        if (fits) {
          rows -= size.rows
          bytes -= size.bytes
        }
        fits
      }
  }
}

private object ValueLoader {
  private val MostObjects = 1024
  private val MostRows = 4L << 20
  private val MostBytes = 32L << 20
}
