package org.metastore.spark.statistics.objects

import java.io.{ByteArrayInputStream, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.util.{Base64, Collections}

import scala.collection.JavaConverters._

import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.format.{
  ColumnChunk => StoredChunk, CompressionCodec, FileMetaData, RowGroup => StoredGroup, Statistics, Util
}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.schema.MessageType

import org.metastore.spark.reason.Indexed

/** A column chunk, where it lies and how it is packed. */
private[statistics] final case class ColumnChunk(
    start: Long,
    length: Long,
    values: Long,
    codec: CompressionCodec,
    decoded: Long,
    ints: Option[(Int, Int)])

private[statistics] final case class RowGroupEntry(rows: Long, chunks: IndexedSeq[ColumnChunk])

/** The verified footer of an object: where its column chunks lie, and the digest of each. */
private[statistics] final class ParquetFooter(
    val schema: MessageType,
    val rowGroups: IndexedSeq[RowGroupEntry],
    digests: Array[Byte],
    texts: Map[String, String]) {
  import ParquetFooter._

  val leaves: IndexedSeq[ColumnDescriptor] = schema.getColumns.asScala.toIndexedSeq

  /** The text of one of our keys. */
  def text(key: String): Option[String] = texts.get(key)

  /** All rows. */
  val rows: Long = rowGroups.map(_.rows).sum

  /** Bytes of all pages when decompressed. */
  val decodedBytes: Double =
    (for (group <- rowGroups; chunk <- group.chunks) yield chunk.decoded.toDouble).sum

  private val byName = leaves.indices.groupBy(leaves(_).getPath.head)

  /** The leaf of a column that is not nested. Raises an error if it is missing. */
  def leaf(name: String): Int = byName.get(name) match {
    case Some(Seq(only)) => only
    case _ => throw new IllegalArgumentException(s"it has no column $name")
  }

  /** The leaf of a path. Raises an error if it is missing. */
  def leafAt(path: Seq[String]): Int = leaves.indexWhere(_.getPath.toSeq == path) match {
    case -1 => throw new IllegalArgumentException(s"it has no column ${path.mkString(".")}")
    case leaf => leaf
  }

  def has(name: String): Boolean = byName.contains(name)

  def chunk(rowGroup: Int, leaf: Int): ColumnChunk = rowGroups(rowGroup).chunks(leaf)

  /** Row groups that may hold one of these values of `column`, by the footer's statistics. */
  def groupsOf(columns: Set[Int]): Seq[Int] = rowGroups.indices.filter { group =>
    chunk(group, leaf("column")).ints.forall { case (least, most) =>
      columns.exists(column => least <= column && column <= most)
    }
  }

  /**
   * The least hash of the values of each row group, where they are cut by it; raises where the footer's text
   * is not that.
   */
  lazy val leastHashes: Option[IndexedSeq[Long]] = texts.get(Hashes).map { text =>
    val numbers = ByteBuffer.wrap(Base64.getDecoder.decode(text))
    if (numbers.remaining != rowGroups.size * 8)
      throw new IllegalArgumentException("it has not one hash a row group")
    rowGroups.indices.map(i => numbers.getLong(i * 8))
  }

  def verify(rowGroup: Int, leaf: Int, data: Array[Byte], offset: Int, length: Int): Boolean = {
    val at = (rowGroup * leaves.size + leaf) * DigestBytes
    val digest = Sha256.digest(data, offset, length)
    java.util.Arrays.equals(digest, 0, DigestBytes, digests, at, at + DigestBytes)
  }
}

private[statistics] object ParquetFooter {
  private val DigestBytes = 16
  private val Hashes = "metastore.hashes"
  private val Digests = "metastore.digests"
  private val Tail = 8 // length of the footer, magic number

  /** Reads a footer that was verified. */
  def read(bytes: Array[Byte], offset: Int, length: Int): ParquetFooter = {
    val stored = inMemory(Util.readFileMetaData(new ByteArrayInputStream(bytes, offset, length - Tail)))
    val groups = stored.getRow_groups.asScala.map(rowGroup).toIndexedSeq
    val texts = Indexed.entries(stored.getKey_value_metadata.asScala)(pair => pair.getKey -> pair.getValue)
    def noDigests = new IllegalArgumentException("it has no digests of its columns")
    val digests = Base64.getDecoder.decode(texts.getOrElse(Digests, throw noDigests))
    if (digests.length != groups.map(_.chunks.size).sum * DigestBytes)
      throw new IllegalArgumentException("it has too few digests of its columns")
    new ParquetFooter(schemaOf(stored), groups, digests, texts - Digests)
  }

  /** Reads bytes in memory: bytes that cannot be read are not a writer's. */
  def inMemory[T](read: => T): T =
    try read
    catch { case e: IOException => throw new IllegalArgumentException("it is not as encoded", e) }

  private def schemaOf(stored: FileMetaData): MessageType = {
    stored.setRow_groups(Collections.emptyList[StoredGroup])
    inMemory(new ParquetMetadataConverter().fromParquetMetadata(stored)).getFileMetaData.getSchema
  }

  /** Copied at once: the structures of Thrift take ten times their bytes. */
  private def rowGroup(stored: StoredGroup): RowGroupEntry =
    RowGroupEntry(stored.getNum_rows, stored.getColumns.asScala.map(columnChunk).toIndexedSeq)

  private def columnChunk(stored: StoredChunk): ColumnChunk = {
    val metadata = stored.getMeta_data
    ColumnChunk(
      metadata.getData_page_offset,
      metadata.getTotal_compressed_size,
      metadata.getNum_values,
      metadata.getCodec,
      metadata.getTotal_uncompressed_size,
      Option(metadata.getStatistics).flatMap(rangeOf))
  }

  /** The least and the greatest value of a column of 32-bit integers. */
  private def rangeOf(statistics: Statistics): Option[(Int, Int)] =
    for {
      least <- int32(statistics.getMin_value)
      most <- int32(statistics.getMax_value)
    } yield (least, most)

  private def int32(bytes: Array[Byte]): Option[Int] =
    Option(bytes).filter(_.length == 4).map(ByteBuffer.wrap(_).order(ByteOrder.LITTLE_ENDIAN).getInt())
}
