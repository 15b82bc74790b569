package org.metastore.spark.statistics.values

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockReader, ColumnSummary, ColumnValues, FileJoin, FileList, TypePromotion, ValueEvidence
}
import org.metastore.spark.statistics.objects.{Manifest, Snapshot, SummaryRef, ValueHash, Values}

/** Finds the values of a column in the data files of one scan where a snapshot's lists tell in which of them each value lives. */
private[statistics] final class ValueIndex(
    files: BlockReader,
    places: ValueIndexReader,
    manifest: Manifest,
    joined: FileJoin,
    scan: FileList,
    budget: Budget) {
  import ValueIndex._

  /** What a snapshot tells of a column, as far as planning may wait for it. */
  def find(key: String, dataType: DataType, among: Array[Int], summary: ColumnSummary): Option[IndexFiles] =
    for {
      (snapshot, column) <- source(key, dataType)
      lists = new Lists(snapshot, column, dataType)
      if snapshot.placed.isDefined || among.length * Share >= snapshot.tableFiles.rows || among.length > Many
      where <- joinedWith(snapshot)
      told <- lists.coveredRows
    } yield new IndexFiles(told, where, summary, lists.rows(_))

  /** The newest snapshot that tells of the column, with its place there. */
  private def source(key: String, dataType: DataType): Option[(Snapshot, Int)] = {
    val found = for {
      snapshot <- manifest.snapshots.reverseIterator
      column <- snapshot.distribution
      entry = snapshot.columns(column)
      if entry.key == key && TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (snapshot, column)
    Indexed.first(found)
  }

  private def joinedWith(snapshot: Snapshot): Option[Array[Int]] =
    Option(joined.placesInLists.get(snapshot.tableFiles)).orElse {
      val ref = snapshot.tableFiles
      PlanningPool.run(Seq(() => files.tableFiles(ref).join(scan)), budget).head.toOption.map { found =>
        joined.placesInLists.put(ref, found)
        found
      }
    }

  /** The lists of one column. */
  private final class Lists(snapshot: Snapshot, column: Int, dataType: DataType) {
    private val refs = snapshot.frequenciesOf(column)

    private def number: Int = Math.toIntExact(snapshot.tableFiles.rows)

    /** By data file of the snapshot: of how many of its rows the lists tell. */
    def coveredRows: Option[Array[Long]] = snapshot.placed match {
      case Some(ref) =>
        val key = s"told:${ref.name}:${ref.footerSha256}:$column:$number"
        CacheEntry.all(
          Seq(CacheEntry[Array[Long]](key, _.length * 8L)(places.coveredRows(ref, column, number))),
          budget).head.toOption
      case None => sum(None, _.total)
    }

    /** By data file of the snapshot: how many of its rows have one of the points. `None`: not known. */
    def rows(points: Values): Option[Array[Long]] =
      sum(snapshot.placed.map(_ => new ValueHash(dataType).hash(points)), _.countPostings(points))

    private def hashesIn(ref: SummaryRef, hashes: Array[Long]): Array[Long] =
      ref.part.fold(hashes)(part => hashes.filter(part.has(_)))

    /** @param hashes of the values that are read; `None`: all */
    private def sum(hashes: Option[Array[Long]], counts: Postings => PostingCounts): Option[Array[Long]] = {
      val asked =
        for {
          ref <- refs
          of = hashes.map(hashesIn(ref, _)) if !of.exists(_.isEmpty)
        } yield ref -> of
      val lookUps = for ((ref, of) <- asked) yield () => places.groups(ref.ref, column, dataType, of)
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
 * Where values live, as far as it is certain for the files of a scan.
 *
 * @param where of each file of the scan its place in the snapshot's list, or -1
 * @param find by data file of the snapshot: how many of its rows have one of some points; `None`: not known
 */
private[statistics] final class IndexFiles(
    told: Array[Long],
    where: Array[Int],
    summary: ColumnSummary,
    find: Values => Option[Array[Long]]) {

  /** Whether it is known of a file which values it has. */
  def tells(file: Int): Boolean = {
    val place = where(file)
    place >= 0 && place < told.length && summary.hasStatistics(file) && summary.nulls(file) >= 0 &&
    told(place) == summary.rows(file) - summary.nulls(file)
  }

  /** How many rows of a file have one of the points, asked only of files that are known. */
  def rows(points: Values): Option[Int => Long] = find(points).map(found => file => found(where(file)))

  /** How many rows of a file have a value, asked only of files that are known. */
  def values(file: Int): Long = told(where(file))
}

/** Single values by where they live; of the other files what else is known. */
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
