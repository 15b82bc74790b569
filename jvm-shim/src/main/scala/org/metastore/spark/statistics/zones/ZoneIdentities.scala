package org.metastore.spark.statistics.zones

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Arrays, Base64}
import java.util.zip.CRC32

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.columns.{
  BlockColumn, BlockJoin, BlockRows, ColumnLoader, ColumnSummary, FileGroupStatistics, FileList,
  SummaryAssembler
}
import org.metastore.spark.statistics.objects.ParquetFooter

/** Identifies the data files of zones without reading their paths: docs/format.md, "files". */
private[statistics] final class ZoneIdentities private (entries: ByteBuffer) {
  import ZoneIdentities._

  val zones: Int = entries.limit() / EntryBytes

  def weight: Long = entries.limit()

  /**
   * The index in a scan's list at which each zone of a block may begin, by its first and last path; -1: none.
   */
  def findStarts(files: FileList, blockFiles: Int): Array[Int] = {
    val starts = new Array[Int](zones)
    Arrays.fill(starts, -1)
    lazy val byFirst = (0 until zones).groupBy(first)
    var (at, zone, alone) = (0, 0, files.length / Alone + Zone.Files)
    while (at < files.length && alone > 0) {
      if (zone == zones || !fits(zone, at, files, blockFiles))
        zone = byFirst.getOrElse(crc(files.paths(at)), Nil).find(z =>
          starts(z) < 0 && fits(z, at, files, blockFiles)).getOrElse(zones)
      if (zone < zones && starts(zone) < 0) {
        starts(zone) = at
        at += Zone.length(zone, blockFiles)
        zone += 1
      } else {
        at += 1
        alone -= 1
      }
    }
    starts
  }

  /** The zones of `candidates` whose files are the list's files from their start on. */
  def confirm(candidates: Seq[Int], starts: Array[Int], files: FileList, blockFiles: Int): Seq[Int] = {
    val identity = new Identity(files)
    candidates.filter { zone =>
      identity.read(starts(zone), starts(zone) + Zone.length(zone, blockFiles))
      identity.hashOfFacts == entries.getLong(zone * EntryBytes + 8) &&
      identity.hashOfPaths == entries.getLong(zone * EntryBytes)
    }
  }

  private def fits(zone: Int, at: Int, files: FileList, blockFiles: Int): Boolean = {
    val end = at + Zone.length(zone, blockFiles)
    end <= files.length && crc(files.paths(at)) == first(zone) && crc(files.paths(end - 1)) == last(zone)
  }

  private def first(zone: Int): Int = entries.getInt(zone * EntryBytes + 16)

  private def last(zone: Int): Int = entries.getInt(zone * EntryBytes + 20)
}

private[statistics] object ZoneIdentities {
  private val Key = "metastore.identities"

  private val EntryBytes = 24
  private val Alone = 8 // one file of so many

  /** The identities in a footer; `None` if it has none that can be used. */
  def fromFooter(footer: ParquetFooter): Option[ZoneIdentities] = Try {
    footer.text(Key).map { text =>
      val bytes = Base64.getDecoder.decode(text)
      require(bytes.length > 0 && bytes.length % EntryBytes == 0)
      new ZoneIdentities(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN))
    }
  }.toOption.flatten

  private def crc(path: String): Int = {
    val crc = new CRC32
    crc.update(path.getBytes(UTF_8))
    crc.getValue.toInt
  }

  /** Hashes of consecutive files of a list. */
  private final class Identity(files: FileList) {
    private var chars = new Array[Char](Zone.Files * 64)
    private val facts = new Array[Long](Zone.Files * Facts)
    private var (used, count) = (0, 0)

    def read(from: Int, until: Int): Unit = {
      used = 0
      count = until - from
      var i = 0
      while (i < count) {
        val path = files.paths(from + i)
        val length = path.length
        if (length > chars.length - used)
          chars = Arrays.copyOf(chars, math.max(chars.length * 2, used + length))
        path.getChars(0, length, chars, used)
        used += length
        facts(i * Facts) = length
        facts(i * Facts + 1) = files.sizes(from + i)
        facts(i * Facts + 2) = files.modifiedAt(from + i)
        i += 1
      }
    }

    // A character takes two bytes in memory, as a short does.
    def hashOfPaths: Long = XXH64.hashUnsafeBytes(chars, Platform.SHORT_ARRAY_OFFSET, used * 2, 0)

    def hashOfFacts: Long = XXH64.hashUnsafeBytes(facts, Platform.LONG_ARRAY_OFFSET, count * Facts * 8, 0)
  }

  private val Facts = 3 // length of the path, size, modification time
}

/** Consecutive data files of a block with common statistics. */
private[statistics] object Zone {
  val Files: Int = Contract.limit("zone_files").toInt

  /** The number of zones of a number of files. */
  def count(files: Int): Int = (files + Files - 1) / Files

  /** The number of files of a zone of a block. */
  def length(zone: Int, blockFiles: Int): Int = math.min(Files, blockFiles - zone * Files)

  /** Rows of the files of each zone together; -1 where one of them is unknown. */
  def rows(files: Array[Long]): Array[Long] = Array.tabulate(count(files.length)) { zone =>
    val first = zone * Files
    val until = first + length(zone, files.length)
    var (file, sum) = (first, 0L)
    while (file < until && sum >= 0) {
      sum = if (files(file) < 0) -1 else sum + files(file)
      file += 1
    }
    math.max(sum, -1)
  }
}

/** Zones of one block in a scan's list of files. */
private[statistics] final class ZoneJoin(identities: ZoneIdentities, files: FileList, blockFiles: Int) {
  import ZoneJoin._

  private val starts = identities.findStarts(files, blockFiles)

  /** Tasks that find the zones whose files are the list's files from their start on. */
  def checks: Seq[() => Seq[Int]] = starts.indices.filter(starts(_) >= 0).grouped(AtOnce).toVector.map {
    zones => () =>
      identities.confirm(zones, starts, files, blockFiles)
  }

  /** Whether these zones decide for every file if it is in the block. */
  def isComplete(zones: Seq[Int]): Boolean =
    zones.size == starts.length || zones.map(Zone.length(_, blockFiles)).sum == files.length

  /** The ordinal in the block of each file of some zones; -1 for other files. */
  def ordinals(zones: Seq[Int]): Array[Int] = {
    val out = new Array[Int](files.length)
    java.util.Arrays.fill(out, -1)
    for (zone <- zones) {
      val (from, first) = (starts(zone), zone * Zone.Files)
      var i = 0
      while (i < Zone.length(zone, blockFiles)) {
        out(from + i) = first + i
        i += 1
      }
    }
    out
  }
}

private object ZoneJoin {
  private val AtOnce = 32 // zones
}

/** The zones of one block as groups of a scan's files. */
private[statistics] final class ZoneGroups(joined: BlockJoin, loader: ColumnLoader[BlockColumn])
  extends FileGroupStatistics {
  private lazy val asFiles = {
    val files = joined.block.files
    val rows =
      StatisticsCache.getOrLoad[Array[Long]](
        s"zone-rows:${files.name}:${files.footerSha256}",
        _.length * 8L)(Zone.rows(joined.rows))
    new BlockJoin(joined.block, new BlockRows(rows), Array.range(0, length))
  }

  override def length: Int = Zone.count(joined.rows.length)

  override def groupOf(file: Int): Int = {
    val ordinal = joined.ordinals(file)
    if (ordinal < 0) -1 else ordinal / Zone.Files
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    loader.parts(Seq(asFiles), (key, dataType)).map(new SummaryAssembler(key, dataType, length).assemble(_))
}
