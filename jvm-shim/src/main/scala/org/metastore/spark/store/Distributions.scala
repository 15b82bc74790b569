package org.metastore.spark.store

import java.util.{BitSet => JBitSet}

import org.apache.spark.sql.types.DataType

/**
 * Finds the values of a column in the data files of one scan where a snapshot's lists tell in which of them each value lives.
 */
private[store] final class Distributions(
    files: BlockReader, places: PlacesReader, manifest: Manifest, joined: JoinedFiles, scan: FileList, budget: Budget) {
  import Distributions._

  /** What a snapshot tells of a column, as far as planning may wait for it. */
  def of(key: String, dataType: DataType, among: Array[Int], zones: ColumnZones): Option[PlacedFiles] =
    for {
      (snapshot, column) <- source(key, dataType)
      if among.length * Share >= snapshot.tableFiles.rows || among.length > Many || cached(snapshot, column, dataType).now.isDefined
      where <- joinedWith(snapshot)
      found <- Cached.all(Seq(cached(snapshot, column, dataType)), budget).head.toOption
    } yield new PlacedFiles(found, dataType, where, zones)

  /** How many rows of each of some files have one of some values, as `FileStatistics.frequencies`. */
  def frequencies(found: PlacedFiles, points: Points, dataType: DataType, among: Array[Int]): Array[Long] = {
    val listed = found.listed(points)
    val confirmed = points match {
      case _: Points.Longs => Right(listed)
      case asked: Points.Bytes =>
        PlanningPool.run(Seq(() => places.confirmed(found.places, listed, dataType, asked)), budget).head
    }
    confirmed.fold(_ => Filled.longs(among.length, -1), found.rows(_, among))
  }

  /** The newest snapshot that tells of the column, with its place there. */
  private def source(key: String, dataType: DataType): Option[(Snapshot, Int)] = {
    val found = for {
      snapshot <- manifest.snapshots.reverse
      column <- snapshot.distribution
      entry = snapshot.columns(column)
      if entry.key == key && ServedType.of(entry, dataType) == ServedType.Full
    } yield (snapshot, column)
    found.headOption
  }

  private def joinedWith(snapshot: Snapshot): Option[Array[Int]] =
    Option(joined.listed.get(snapshot.tableFiles)).orElse {
      val ref = snapshot.tableFiles
      PlanningPool.run(Seq(() => files.tableFiles(ref).join(scan)), budget).head.toOption.map { found =>
        joined.listed.put(ref, found)
        found
      }
    }

  private def cached(snapshot: Snapshot, column: Int, dataType: DataType): Cached[ValuePlaces] = {
    val refs = snapshot.frequencies.filter(_.columns.contains(column)).map(_.ref)
    val key = s"places:${snapshot.tableFiles.name}:${refs.map(ref => s"${ref.name}:${ref.footerSha256}").mkString(",")}:$column"
    Cached[ValuePlaces](key, _.weight) {
      val size = places.size(refs, column, dataType)
      if (size.rows > MostEntries || size.bytes > MostBytes) NotRead
      else places.read(refs, column, dataType, Math.toIntExact(snapshot.tableFiles.rows))
    }
  }
}

private object Distributions {
  private val Share = 8 // of fewer data files their own lists are read sooner
  private val Many = 1024 // more lists than that are not read
  private val MostEntries = 8L << 20
  private val MostBytes = 32L << 20

  /** Too much to wait for: it tells of no file. */
  private val NotRead = new ValuePlaces(Array.empty, Array(0), Array.empty, Array.empty, Nil, 0)
}

/**
 * Where values live, as far as it is certain for the files of a scan.
 *
 * @param where of each file of the scan its place in the snapshot's list, or -1
 * @param zones the column in the scan's files: lists that do not account for all of a file's rows tell nothing of it
 */
private[store] final class PlacedFiles(
    val places: ValuePlaces, dataType: DataType, where: Array[Int], zones: ColumnZones) {

  /** Whether it is known of a file which values it has. */
  def tells(file: Int): Boolean = {
    val place = where(file)
    place >= 0 && place < places.totals.length && zones.known(file) && zones.nulls(file) >= 0 &&
      places.totals(place) == zones.rows(file) - zones.nulls(file)
  }

  /** Values among the points, and such that have their hash. */
  def listed(points: Points): Array[Int] = points match {
    case asked: Points.Longs => places.find(asked.has)
    case asked: Points.Bytes =>
      val hashes = new ValueHash(dataType).of(asked)
      java.util.Arrays.sort(hashes)
      places.find(java.util.Arrays.binarySearch(hashes, _) >= 0)
  }

  def holding(points: Points): Int => Boolean = {
    val found: JBitSet = places.holding(listed(points))
    file => found.get(where(file))
  }

  /** Whether all rows of a file, but those that are null, have one of the points. */
  def within(points: Points): Int => Boolean = points match {
    case _: Points.Bytes => _ => false // of hashes it is not certain
    case _ =>
      val found = places.rows(listed(points))
      file => found(where(file)) == places.totals(where(file))
  }

  def rows(values: Array[Int], among: Array[Int]): Array[Long] = {
    val found = places.rows(values)
    among.map(file => if (tells(file)) found(where(file)) else -1L)
  }
}

/** Single values by where they live; of the other files what else is known. */
private[store] final class PlacedValues(placed: PlacedFiles, others: ColumnValues) extends ColumnValues {
  override def lack(points: Points): Int => Boolean = {
    lazy val (holding, lacking) = (placed.holding(points), others.lack(points))
    file => if (placed.tells(file)) !holding(file) else lacking(file)
  }

  override def within(points: Points): Int => Boolean = {
    lazy val (inside, otherwise) = (placed.within(points), others.within(points))
    file => if (placed.tells(file)) inside(file) else otherwise(file)
  }

  override def known(file: Int): Option[KnownValues] = if (placed.tells(file)) Some(KnownValues.Placed) else others.known(file)
}
