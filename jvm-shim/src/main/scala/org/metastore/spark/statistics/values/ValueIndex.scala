package org.metastore.spark.statistics.values

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockReader, ColumnSummary, ColumnValues, FileJoin, FileList, TypePromotion, ValueEvidence
}
import org.metastore.spark.statistics.objects.{Manifest, ObjectRef, Snapshot, SummaryRef, ValueHash, Values}

/** Finds the values of a column in the data files of one scan, where a snapshot's lists have the data files of each value. */
private[statistics] final class ValueIndex(
    files: BlockReader,
    places: ValueIndexReader,
    manifest: Manifest,
    joined: FileJoin,
    scan: FileList,
    budget: Budget) {
  import ValueIndex._

  /** The snapshot's lists of a column for these files, as far as planning may wait for them. */
  def find(key: String, dataType: DataType, among: Array[Int], summary: ColumnSummary): Option[IndexFiles] =
    for {
      (snapshot, column) <- source(key, dataType)
      lists = new Lists(snapshot, column, dataType)
      if snapshot.placed.isDefined || among.length * Share >= snapshot.tableFiles.rows || among.length > Many
      places <- placesIn(snapshot)
      covered <- lists.coveredRows
    } yield new IndexFiles(covered, places, summary, lists.rows(_))

  /** The newest snapshot with lists of the column, and the column's place there. */
  private def source(key: String, dataType: DataType): Option[(Snapshot, Int)] = {
    val found = for {
      snapshot <- manifest.snapshots.reverseIterator
      column <- snapshot.distribution
      entry = snapshot.columns(column)
      if entry.key == key && TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (snapshot, column)
    Indexed.first(found)
  }

  /** The place of each file of the scan in a snapshot's list of files. */
  private def placesIn(snapshot: Snapshot): Option[Array[Int]] = {
    val ref = snapshot.tableFiles
    def join = PlanningPool.run(Seq(() => joinKept(ref)), budget).head.toOption
    Option(joined.placesInLists.get(ref)).orElse(join)
  }

  private def joinKept(ref: ObjectRef): Array[Int] = {
    val places = files.tableFiles(ref).join(scan)
    joined.placesInLists.put(ref, places)
    places
  }

  /** The lists of one column. */
  private final class Lists(snapshot: Snapshot, column: Int, dataType: DataType) {
    private val refs = snapshot.frequenciesOf(column)

    private def number: Int = Math.toIntExact(snapshot.tableFiles.rows)

    /** By data file of the snapshot: the number of its rows that the lists cover. */
    def coveredRows: Option[Array[Long]] = snapshot.placed match {
      case Some(ref) =>
        val key = s"told:${ref.name}:${ref.footerSha256}:$column:$number"
        val entry = CacheEntry[Array[Long]](key, _.length * 8L)(places.coveredRows(ref, column, number))
        CacheEntry.all(Seq(entry), budget).head.toOption
      case None => sum(None, _.total)
    }

    /** By data file of the snapshot: how many of its rows have one of the points. `None`: not known. */
    def rows(points: Values): Option[Array[Long]] = {
      val hashes = Optional.when(snapshot.placed.nonEmpty)(new ValueHash(dataType).hash(points))
      sum(hashes, _.countPostings(points))
    }

    private def hashesIn(ref: SummaryRef, hashes: Array[Long]): Array[Long] =
      ref.part.fold(hashes)(part => hashes.filter(part.has(_)))

    /** @param hashes of the values that are read; `None`: all */
    private def sum(hashes: Option[Array[Long]], counts: Postings => PostingCounts): Option[Array[Long]] = {
      val lookUps = for {
        ref <- refs
        wanted = hashes.map(hashesIn(ref, _)) if !wanted.exists(_.isEmpty)
      } yield () => places.groups(ref.ref, column, dataType, wanted)
      for {
        found <- all(PlanningPool.run(lookUps, budget))
        groups = found.flatten.map(group => group -> places.cached(group, column, dataType, number))
        if fits(for ((group, values) <- groups if values.find.isEmpty) yield group.size)
        reads = for ((_, values) <- groups) yield () => counts(values.get())
        read <- all(PlanningPool.run(reads, budget))
        sums <- PlanningPool.here(Seq(() => PostingCounts.sum(read, number)), budget).head.toOption
      } yield sums
    }
  }
}

private object ValueIndex {
  // of fewer data files their own lists are read sooner than lists that are not cut by hashes
  private val Share = 8
  private val Many = 1024 // more lists than that are not read
  private val MostEntries = 8L << 20
  private val MostBytes = 32L << 20

  /** Whether planning may wait for so much. */
  private def fits(sizes: Seq[ReadSize]): Boolean =
    sizes.map(_.rows).sum <= MostEntries && sizes.map(_.bytes).sum <= MostBytes

  private def all[T](found: Seq[Either[_, T]]): Option[Seq[T]] =
    Indexed.all(found.map(_.toOption))
}

/**
 * A snapshot's lists of values, as far as they are certain for the files of a scan.
 *
 * @param covered by data file of the snapshot: the number of its rows that the lists cover
 * @param places  of each file of the scan its place in the snapshot's list, or -1
 * @param count   by data file of the snapshot: how many of its rows have one of some points; `None`: not known
 */
private[statistics] final class IndexFiles(
    covered: Array[Long],
    places: Array[Int],
    summary: ColumnSummary,
    count: Values => Option[Array[Long]]) {

  /** Whether the lists have all values of a file. */
  def tells(file: Int): Boolean = {
    val place = places(file)
    place >= 0 && place < covered.length && summary.hasStatistics(file) && summary.nulls(file) >= 0 &&
    covered(place) == summary.rows(file) - summary.nulls(file)
  }

  /** How many rows of a file have one of the points, for files with all values in the lists. */
  def rows(points: Values): Option[Int => Long] =
    count(points).map(counts => file => counts(places(file)))

  /** How many rows of a file have a value, for files with all values in the lists. */
  def values(file: Int): Long = covered(places(file))
}

/** Single values of files by a snapshot's lists; of files without these by their own lists and filters. */
private[statistics] final class IndexValues(
    placed: IndexFiles,
    among: Array[Int],
    load: Array[Int] => ColumnValues)
  extends ColumnValues {
  private lazy val others = load(among.filterNot(placed.tells(_)))

  override def lack(points: Values): Int => Boolean = decided(points, _.lack(points))((rows, _) => rows == 0)

  override def within(points: Values): Int => Boolean =
    decided(points, _.within(points))((rows, file) => rows == placed.values(file))

  private lazy val lists = load(among)

  override def listed(file: Int): Option[Values] = lists.listed(file)

  override def evidence(file: Int): Option[ValueEvidence] =
    if (placed.tells(file)) Some(ValueEvidence.InIndex)
    else others.evidence(file)

  private def decided(
      points: Values,
      otherwise: ColumnValues => Int => Boolean)(told: (Long, Int) => Boolean): Int => Boolean =
    placed.rows(points) match {
      case Some(rows) =>
        lazy val open = otherwise(others)
        file => if (placed.tells(file)) told(rows(file), file) else open(file)
      case None => otherwise(load(among))
    }
}
