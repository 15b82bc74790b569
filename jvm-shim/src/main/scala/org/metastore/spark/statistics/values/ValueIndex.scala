package org.metastore.spark.statistics.values

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.{Indexed, Optional}
import org.metastore.spark.statistics.cache.{Budget, CacheEntry, PlanningPool}
import org.metastore.spark.statistics.columns.{
  BlockReader, ColumnSummary, ColumnValues, FileJoin, FileList, TypePromotion, ValueEvidence
}
import org.metastore.spark.statistics.objects.{Manifest, ObjectRef, Snapshot, SummaryRef, ValueHash, Values}

/** Finds values in the data files of a scan, by a snapshot's lists of the data files of each value. */
private[statistics] final class ValueIndex(
    files: BlockReader,
    reader: ValueIndexReader,
    manifest: Manifest,
    joined: FileJoin,
    scan: FileList,
    budget: Budget) {
  import ValueIndex._

  /** The snapshot's lists of a column for these files; None if planning may not wait for them. */
  def find(
      key: String,
      dataType: DataType,
      selected: Array[Int],
      summary: ColumnSummary): Option[IndexFiles] =
    for {
      (snapshot, column) <- source(key, dataType)
      lists = new Lists(snapshot, column, dataType)
      if snapshot.placed.isDefined || areMany(selected, snapshot)
      snapshotIndices <- indicesIn(snapshot)
      covered <- lists.coveredRows
    } yield new IndexFiles(covered, snapshotIndices, summary, lists.rows(_))

  /** The newest snapshot with lists of the column, and the column's ordinal in it. */
  private def source(key: String, dataType: DataType): Option[(Snapshot, Int)] = {
    val sources = for {
      snapshot <- manifest.snapshots.reverseIterator
      column <- snapshot.distribution
      entry = snapshot.columns(column)
      if entry.key == key && TypePromotion.fromEntry(entry, dataType) == TypePromotion.Full
    } yield (snapshot, column)
    Indexed.first(sources)
  }

  /** The index of each file of the scan in a snapshot's list of files, or -1. */
  private def indicesIn(snapshot: Snapshot): Option[Array[Int]] = {
    val ref = snapshot.tableFiles
    def join = PlanningPool.run(Seq(() => joinFiles(ref)), budget).head.toOption
    Option(joined.placesInLists.get(ref)).orElse(join)
  }

  private def joinFiles(ref: ObjectRef): Array[Int] = {
    val indices = files.tableFiles(ref).join(scan)
    joined.placesInLists.put(ref, indices)
    indices
  }

  /** The lists of one column. */
  private final class Lists(snapshot: Snapshot, column: Int, dataType: DataType) {
    private val refs = snapshot.frequenciesOf(column)

    private def number: Int = Math.toIntExact(snapshot.tableFiles.rows)

    /** The number of rows that the lists cover, by data file of the snapshot. */
    def coveredRows: Option[Array[Long]] = snapshot.placed match {
      case Some(ref) =>
        val key = s"covered:${ref.name}:${ref.footerSha256}:$column:$number"
        val entry = CacheEntry[Array[Long]](key, _.length * 8L)(reader.coveredRows(ref, column, number))
        CacheEntry.all(Seq(entry), budget).head.toOption
      case None => sum(None, _.total)
    }

    /** The number of rows with one of the points, by data file of the snapshot; None if it is unknown. */
    def rows(points: Values): Option[Array[Long]] = {
      val hashes = Optional.when(snapshot.placed.nonEmpty)(new ValueHash(dataType).hash(points))
      sum(hashes, _.countPostings(points))
    }

    private def hashesIn(ref: SummaryRef, hashes: Array[Long]): Array[Long] =
      ref.part.fold(hashes)(part => hashes.filter(part.has(_)))

    /** @param hashes the hashes of the values to read; None reads all values */
    private def sum(hashes: Option[Array[Long]], counts: Postings => PostingCounts): Option[Array[Long]] = {
      val lookUps = for {
        ref <- refs
        hashesOfPart = hashes.map(hashesIn(ref, _)) if !hashesOfPart.exists(_.isEmpty)
      } yield () => reader.groups(ref.ref, column, dataType, hashesOfPart)
      for {
        groups <- all(PlanningPool.run(lookUps, budget))
        entries = groups.flatten.map(group => group -> reader.cached(group, column, dataType, number))
        if fits(for ((group, postings) <- entries if postings.find.isEmpty) yield group.size)
        reads = for ((_, postings) <- entries) yield () => counts(postings.get())
        parts <- all(PlanningPool.run(reads, budget))
        sums <- PlanningPool.here(Seq(() => PostingCounts.sum(parts, number)), budget).head.toOption
      } yield sums
    }
  }
}

private object ValueIndex {
  private val Share = 8
  private val Many = 1024 // so many lists are not read
  private val MostEntries = 8L << 20
  private val MostBytes = 32L << 20

  /** Whether reading the own lists of so many files takes longer than reading a snapshot's uncut lists. */
  private def areMany(files: Array[Int], snapshot: Snapshot): Boolean =
    files.length * Share >= snapshot.tableFiles.rows || files.length > Many

  /** Whether planning may wait for reads of these sizes. */
  private def fits(sizes: Seq[ReadSize]): Boolean =
    sizes.map(_.rows).sum <= MostEntries && sizes.map(_.bytes).sum <= MostBytes

  private def all[T](results: Seq[Either[_, T]]): Option[Seq[T]] =
    Indexed.all(results.map(_.toOption))
}

/**
 * A snapshot's lists of values for the files of a scan.
 *
 * @param covered the number of rows that the lists cover, by data file of the snapshot
 * @param indices the index of each file of the scan in the snapshot's list of files, or -1
 * @param count   finds the number of rows with one of the points, by data file of the snapshot
 */
private[statistics] final class IndexFiles(
    covered: Array[Long],
    indices: Array[Int],
    summary: ColumnSummary,
    count: Values => Option[Array[Long]]) {

  /** Whether the lists have all values of a file. */
  def isCovered(file: Int): Boolean = {
    val index = indices(file)
    index >= 0 && index < covered.length && summary.hasStatistics(file) && summary.nulls(file) >= 0 &&
    covered(index) == summary.rows(file) - summary.nulls(file)
  }

  /** The number of rows of a covered file with one of the points. */
  def rows(points: Values): Option[Int => Long] =
    count(points).map(counts => file => counts(indices(file)))

  /** The number of rows of a covered file that are not NULL. */
  def values(file: Int): Long = covered(indices(file))
}

/** Single values of files by a snapshot's lists, or else by the files' own lists and filters. */
private[statistics] final class IndexValues(
    index: IndexFiles,
    selected: Array[Int],
    load: Array[Int] => ColumnValues)
  extends ColumnValues {
  private lazy val uncovered = load(selected.filterNot(index.isCovered(_)))

  override def lack(points: Values): Int => Boolean = decide(points, _.lack(points))((rows, _) => rows == 0)

  override def within(points: Values): Int => Boolean =
    decide(points, _.within(points))((rows, file) => rows == index.values(file))

  private lazy val lists = load(selected)

  override def listed(file: Int): Option[Values] = lists.listed(file)

  override def evidence(file: Int): Option[ValueEvidence] =
    if (index.isCovered(file)) Some(ValueEvidence.InIndex)
    else uncovered.evidence(file)

  /** Decides covered files by their number of rows with one of the points, other files by their own lists. */
  private def decide(
      points: Values,
      byLists: ColumnValues => Int => Boolean)(byRows: (Long, Int) => Boolean): Int => Boolean =
    index.rows(points) match {
      case Some(rows) =>
        lazy val decideUncovered = byLists(uncovered)
        file => if (index.isCovered(file)) byRows(rows(file), file) else decideUncovered(file)
      case None => byLists(load(selected))
    }
}
