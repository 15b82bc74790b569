package org.metastore.spark.statistics.objects

import java.io.{ByteArrayInputStream, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.schema.{MessageType, Type}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

/** A column of an object's Parquet schema. */
private[statistics] final case class FooterLeaf(path: Seq[String], physical: PrimitiveTypeName, nullable: Int, repeated: Int)

/** A column chunk, where it lies and how it is packed. */
private[statistics] final case class ColumnChunk(
    start: Long, length: Long, values: Long, codec: CompressionCodecName, decoded: Long, ints: Option[(Int, Int)])

private[statistics] final case class RowGroupEntry(rows: Long, chunks: IndexedSeq[ColumnChunk])

/** The verified footer of an object: where its column chunks lie, and the digest of each. */
private[statistics] final class ParquetFooter(
    bytes: Array[Byte], val leaves: IndexedSeq[FooterLeaf], val rowGroups: IndexedSeq[RowGroupEntry], digests: Array[Byte],
    texts: Map[String, String]) {
  import ParquetFooter._

  /** What the footer says under a key of ours. */
  def text(key: String): Option[String] = texts.get(key)

  /** All rows. */
  val rows: Long = rowGroups.map(_.rows).sum

  /** Bytes of all pages when decompressed. */
  val decodedBytes: Double = rowGroups.flatMap(_.chunks).map(_.decoded.toDouble).sum

  private val byName = leaves.indices.groupBy(leaves(_).path.head)

  /** The whole schema, for reading rows. */
  lazy val schema: MessageType = {
    val footer = new ByteArrayInputStream(bytes, 0, bytes.length - Tail)
    try new ParquetMetadataConverter().readParquetMetadata(footer, ParquetMetadataConverter.SKIP_ROW_GROUPS).getFileMetaData.getSchema
    catch { case e: IOException => throw new IllegalArgumentException("its footer is not as encoded", e) } // nothing was read
  }

  /** The leaf of a column that is not nested; raises where there is none. */
  def leaf(name: String): Int = byName.get(name).collect { case Seq(only) => only }
    .getOrElse(throw new IllegalArgumentException(s"it has no column $name"))

  /** The leaf of that path; raises where there is none. */
  def leafAt(path: Seq[String]): Int = leaves.indexWhere(_.path == path) match {
    case -1 => throw new IllegalArgumentException(s"it has no column ${path.mkString(".")}")
    case found => found
  }

  def has(name: String): Boolean = byName.contains(name)

  def chunk(rowGroup: Int, leaf: Int): ColumnChunk = rowGroups(rowGroup).chunks(leaf)

  /** Row groups that may hold one of these values of `column`, by the footer's statistics. */
  def groupsOf(columns: Set[Int]): Seq[Int] = rowGroups.indices.filter { group =>
    chunk(group, leaf("column")).ints.forall { case (least, most) => columns.exists(c => least <= c && c <= most) }
  }

  /** The least hash of the values of each row group, where they are cut by it; raises where the footer's text is not that. */
  lazy val leastHashes: Option[IndexedSeq[Long]] = texts.get(Hashes).map { text =>
    val numbers = ByteBuffer.wrap(Base64.getDecoder.decode(text))
    if (numbers.remaining != rowGroups.size * 8) throw new IllegalArgumentException("it has not one hash a row group")
    rowGroups.indices.map(i => numbers.getLong(i * 8))
  }

  def verify(rowGroup: Int, leaf: Int, data: Array[Byte], offset: Int, length: Int): Boolean = {
    val at = (rowGroup * leaves.size + leaf) * DigestBytes
    val digest = ManifestReader.sha256(data, offset, length)
    java.util.Arrays.equals(digest, 0, DigestBytes, digests, at, at + DigestBytes)
  }
}

private[statistics] object ParquetFooter {
  private val DigestBytes = 16
  private val Hashes = "metastore.hashes"
  private val Digests = "metastore.digests"
  private val Tail = 8 // length of the footer, magic number
  private val MaxChunks = 1 << 16
  private val MaxColumns = 1 << 10
  private val MaxTexts = 1 << 10
  private val MaxDepth = 4
  private val MaxValues = 1 << 27 // of a column in a row group

  /** Reads a footer that was verified. */
  def read(bytes: Array[Byte]): ParquetFooter = {
    val thrift = new CompactThrift(bytes, 0, bytes.length - Tail)
    var (schema, groups, texts) = (IndexedSeq.empty[SchemaElement], IndexedSeq.empty[RowGroupEntry], Map.empty[String, String])
    var rows = -1L
    thrift.struct {
      case (2, _) => schema = all(thrift, MaxColumns)(SchemaElement.read)
      case (3, _) => rows = thrift.long()
      case (4, _) => groups = all(thrift, MaxChunks)(rowGroup)
      case (5, _) => texts = all(thrift, MaxTexts)(keyValue).toMap
      case (_, kind) => thrift.skip(kind)
    }
    val leaves = leavesOf(schema)
    if (groups.exists(_.chunks.size != leaves.size)) throw new IllegalArgumentException("its row groups lack columns")
    if (groups.map(_.rows).sum != rows || rows > MaxValues) throw new IllegalArgumentException(s"it has $rows rows in other row groups")
    if (groups.size * leaves.size > MaxChunks) throw new IllegalArgumentException("it has too many row groups")
    groups.foreach(refuseCounts(_, leaves))
    refuseOverlaps(groups)
    val digests = Base64.getDecoder.decode(
      texts.getOrElse(Digests, throw new IllegalArgumentException("it has no digests of its columns")))
    if (digests.length != groups.size * leaves.size * DigestBytes)
      throw new IllegalArgumentException("it has too few digests of its columns")
    new ParquetFooter(bytes, leaves, groups, digests, texts - Digests)
  }

  private def all[T](thrift: CompactThrift, most: Int)(read: CompactThrift => T): IndexedSeq[T] = {
    val found = IndexedSeq.newBuilder[T]
    thrift.list(most)(_ => found += read(thrift))
    found.result()
  }

  /** Every row has a value or a null, in lists at least one of them. */
  private def refuseCounts(group: RowGroupEntry, leaves: IndexedSeq[FooterLeaf]): Unit =
    group.chunks.zip(leaves).foreach { case (chunk, leaf) =>
      val sound = if (leaf.repeated == 0) chunk.values == group.rows else chunk.values >= group.rows && chunk.values <= MaxValues
      if (!sound) throw new IllegalArgumentException(s"it has ${chunk.values} values in ${group.rows} rows")
    }

  /** Columns stand one behind the other, row group by row group: bytes that are two columns are at least one of them wrongly. */
  private def refuseOverlaps(groups: IndexedSeq[RowGroupEntry]): Unit = {
    var free = 0L
    for (group <- groups; chunk <- group.chunks) {
      if (chunk.start < free || chunk.start > Long.MaxValue - chunk.length) throw new IllegalArgumentException("its columns overlap")
      free = chunk.start + chunk.length
    }
  }

  private def keyValue(thrift: CompactThrift): (String, String) = {
    var (key, value) = ("", "")
    thrift.struct {
      case (1, _) => key = thrift.text()
      case (2, _) => value = thrift.text()
      case (_, kind) => thrift.skip(kind)
    }
    key -> value
  }

  private def rowGroup(thrift: CompactThrift): RowGroupEntry = {
    var (chunks, rows) = (IndexedSeq.empty[ColumnChunk], -1L)
    thrift.struct {
      case (1, _) => chunks = all(thrift, MaxColumns)(columnChunk)
      case (3, _) => rows = thrift.long()
      case (_, kind) => thrift.skip(kind)
    }
    if (rows <= 0 || rows > MaxValues) throw new IllegalArgumentException(s"it has a row group of $rows rows")
    RowGroupEntry(rows, chunks)
  }

  private def columnChunk(thrift: CompactThrift): ColumnChunk = {
    var found: Option[ColumnChunk] = None
    thrift.struct {
      case (3, _) => found = Some(columnMetadata(thrift))
      case (_, kind) => thrift.skip(kind)
    }
    found.getOrElse(throw new IllegalArgumentException("a column has no place"))
  }

  private def columnMetadata(thrift: CompactThrift): ColumnChunk = {
    var (physical, codec, values, length, start, decoded) = (-1, -1, -1L, -1L, -1L, 0L)
    var range: Option[(Int, Int)] = None
    thrift.struct {
      case (1, _) => physical = thrift.int()
      case (4, _) => codec = thrift.int()
      case (5, _) => values = thrift.long()
      case (6, _) => decoded = math.max(0, thrift.long())
      case (7, _) => length = thrift.long()
      case (9, _) => start = thrift.long()
      case (11, _) => throw new IllegalArgumentException("it has a dictionary")
      case (12, _) => range = intStatistics(thrift)
      case (_, kind) => thrift.skip(kind)
    }
    if (length < 0 || length > Int.MaxValue) throw new IllegalArgumentException(s"it has a column of $length bytes")
    ColumnChunk(start, length, values, codecOf(codec), decoded, range.filter(_ => physical == Int32))
  }

  private val Int32 = 1
  private val Uncompressed = 0
  private val Zstd = 6

  private def codecOf(number: Int): CompressionCodecName = number match {
    case Uncompressed => CompressionCodecName.UNCOMPRESSED
    case Zstd => CompressionCodecName.ZSTD
    case _ => throw new IllegalArgumentException(s"its compression $number is not the format's")
  }

  private def intStatistics(thrift: CompactThrift): Option[(Int, Int)] = {
    var (least, most) = (Option.empty[Int], Option.empty[Int])
    thrift.struct {
      case (5, _) => most = int32(thrift.bytes())
      case (6, _) => least = int32(thrift.bytes())
      case (_, kind) => thrift.skip(kind)
    }
    least.zip(most).headOption
  }

  private def int32(bytes: Array[Byte]): Option[Int] =
    if (bytes.length == 4) Some(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt()) else None

  private final case class SchemaElement(name: String, physical: Int, repetition: Int, children: Int)

  private object SchemaElement {
    def read(thrift: CompactThrift): SchemaElement = {
      var (name, physical, repetition, children) = ("", -1, 0, 0)
      thrift.struct {
        case (1, _) => physical = thrift.int()
        case (3, _) => repetition = thrift.int()
        case (4, _) => name = thrift.text()
        case (5, _) => children = thrift.int()
        case (_, kind) => thrift.skip(kind)
      }
      SchemaElement(name, physical, repetition, children)
    }
  }

  private val physicals = IndexedSeq(
    PrimitiveTypeName.BOOLEAN, PrimitiveTypeName.INT32, PrimitiveTypeName.INT64, PrimitiveTypeName.INT96,
    PrimitiveTypeName.FLOAT, PrimitiveTypeName.DOUBLE, PrimitiveTypeName.BINARY, PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY)

  /** The schema stands as a tree in depth-first order, each node with the number of its children. */
  private def leavesOf(schema: IndexedSeq[SchemaElement]): IndexedSeq[FooterLeaf] = {
    val leaves = IndexedSeq.newBuilder[FooterLeaf]
    var at = 1 // behind the root
    def children(count: Int, path: Seq[String], nullable: Int, repeated: Int): Unit = (0 until count).foreach { _ =>
      if (at >= schema.size || path.size > MaxDepth) throw new IllegalArgumentException("its columns are no tree, or nest deeply")
      val node = schema(at)
      at += 1
      val (below, absent, again) = (
        path :+ node.name, nullable + (if (node.repetition == 0) 0 else 1),
        repeated + (if (node.repetition == Type.Repetition.REPEATED.ordinal) 1 else 0))
      if (node.children == 0) leaves += FooterLeaf(below, physicals(node.physical), absent, again)
      else children(node.children, below, absent, again)
    }
    schema.headOption.foreach(root => children(root.children, Nil, 0, 0))
    if (at < schema.size || schema.exists(_.children < 0)) throw new IllegalArgumentException("its columns are no tree")
    leaves.result()
  }
}

/** Reads Thrift's compact protocol from bytes, as far as Parquet footers and page headers need it. */
private[statistics] final class CompactThrift(bytes: Array[Byte], private var at: Int, end: Int) {
  import CompactThrift._

  /** Calls `field` with id and type of every field of a structure; it must read the value or pass over it. */
  def struct(field: (Int, Int) => Unit): Unit = {
    var id = 0
    var header = byte()
    while (header != Stop) {
      val delta = (header >> 4) & 0xf
      id = if (delta == 0) signed().toInt else id + delta
      field(id, header & 0xf)
      header = byte()
    }
  }

  /** Where the next byte stands that was not read. */
  def position: Int = at

  /** Calls `element` with the type, once for each element of a list, of which there may be `most`. */
  def list(most: Long)(element: Int => Unit): Unit = {
    val header = byte()
    val short = (header >> 4) & 0xf
    val size = if (short == LongList) unsigned() else short.toLong
    if (size < 0 || size > most || size > end - at) refuse() // every element takes a byte
    var i = 0L
    while (i < size) {
      element(header & 0xf)
      i += 1
    }
  }

  def int(): Int = signed().toInt

  def long(): Long = signed()

  def bytes(): Array[Byte] = {
    val from = skipBytes()
    java.util.Arrays.copyOfRange(bytes, from, at)
  }

  def text(): String = {
    val from = skipBytes()
    new String(bytes, from, at - from, UTF_8)
  }

  /** Passes over a value of that type. */
  def skip(kind: Int): Unit = skip(kind, inList = false, 0)

  private def skip(kind: Int, inList: Boolean, depth: Int): Unit = {
    if (depth > MaxDepth) refuse()
    kind match {
      case True | False => if (inList) byte()
      case ByteType => byte()
      case I16 | I32 | I64 => unsigned()
      case Double => advance(8)
      case Binary => skipBytes()
      case ListType | SetType => list(Long.MaxValue)(skip(_, inList = true, depth + 1))
      case Struct => struct((_, field) => skip(field, inList = false, depth + 1))
      case _ => refuse() // footers have no maps
    }
  }

  private def skipBytes(): Int = {
    val length = unsigned()
    if (length < 0 || length > end - at) refuse()
    advance(length.toInt)
  }

  /** Moves on, and says where it was. */
  private def advance(length: Int): Int = {
    if (length > end - at) refuse()
    at += length
    at - length
  }

  private def byte(): Int = bytes(advance(1))

  private def unsigned(): Long = {
    var value = 0L
    var shift = 0
    var next = 0x80
    while ((next & 0x80) != 0) {
      if (shift > 63) refuse()
      next = byte()
      value |= (next & 0x7fL) << shift
      shift += 7
    }
    value
  }

  private def signed(): Long = {
    val value = unsigned()
    (value >>> 1) ^ -(value & 1)
  }

  private def refuse(): Nothing = throw new IllegalArgumentException("its footer or a page header is not as encoded")
}

private object CompactThrift {
  private val Stop = 0
  private val True = 1
  private val False = 2
  private val ByteType = 3
  private val I16 = 4
  private val I32 = 5
  private val I64 = 6
  private val Double = 7
  private val Binary = 8
  private val ListType = 9
  private val SetType = 10
  private val Struct = 12
  private val LongList = 15
  private val MaxDepth = 16
}
