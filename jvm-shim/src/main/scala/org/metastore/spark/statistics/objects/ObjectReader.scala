package org.metastore.spark.statistics.objects

import java.io.{EOFException, FileNotFoundException, IOException}
import java.security.MessageDigest

import org.apache.commons.codec.binary.Hex

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.{DamagedObjectException, Indexed, StatisticsException}
import org.metastore.spark.statistics.cache.CacheEntry

/** Reads objects by ranges; hands out only bytes that agree with the digests. */
private[statistics] final class ObjectReader(objects: StoreFolder) {
  import ObjectReader._

  /**
   * The object's footer, from the cache or by one request. The key of the cache is the digest, which is
   * verified.
   */
  def footer(ref: ObjectRef): ParquetFooter = {
    val footer = cachedFooter(ref).get()
    if (ref.rows != ObjectRef.AnyRows && ref.rows != footer.rows)
      throw damaged(ref, s"it has ${footer.rows} rows where ${ref.rows} were named")
    if (footer.decodedBytes > mostBytes(ref.length))
      throw damaged(ref, s"it has ${footer.decodedBytes} bytes when decoded")
    footer
  }

  def cachedFooter(ref: ObjectRef): CacheEntry[ParquetFooter] =
    CacheEntry[ParquetFooter](
      s"footer:${ref.name}:${ref.footerSha256}",
      _ => ref.footerLength * 3L)(asDamage(ref)(readFooter(ref)))

  /** Some columns of one row group, verified. Neighbouring column chunks come by one request. */
  def chunks(ref: ObjectRef, footer: ParquetFooter, rowGroup: Int, leaves: Seq[Int]): Map[Int, ChunkPages] =
    asDamage(ref) {
      Indexed.entries(read(ref, leaves.map(leaf => leaf -> footer.chunk(rowGroup, leaf)))) { piece =>
        if (!footer.verify(rowGroup, piece.leaf, piece.bytes, piece.offset, piece.chunk.length.toInt))
          throw unlike(ref, "a column's digest does not agree")
        piece.leaf -> piece.pages(ref, footer)
      }
    }

  /** Parts of some column chunks, verified. */
  def parts(
      ref: ObjectRef,
      footer: ParquetFooter,
      parts: Seq[(Int, ColumnChunk)],
      expected: Array[Byte]): Map[Int, ChunkPages] =
    asDamage(ref) {
      val pieces = Indexed.by(read(ref, parts))(_.leaf)
      val digest = MessageDigest.getInstance("SHA-256")
      for ((leaf, chunk) <- parts)
        digest.update(pieces(leaf).bytes, pieces(leaf).offset, chunk.length.toInt)
      if (!java.util.Arrays.equals(digest.digest(), 0, expected.length, expected, 0, expected.length))
        throw unlike(ref, "a page's digest does not agree")
      for ((leaf, piece) <- pieces) yield leaf -> piece.pages(ref, footer)
    }

  private def read(ref: ObjectRef, chunks: Seq[(Int, ColumnChunk)]): Seq[ChunkBytes] = {
    val ranges = for ((leaf, chunk) <- chunks) yield ByteRange(leaf, chunk)
    val sorted = ranges.sortBy(_.start)
    for (range <- sorted) {
      if (range.start < 4 || range.length > ref.length - range.start)
        throw damaged(ref, "a column lies outside of it")
    }
    val byLeaf = chunks.toMap
    withBytes(ref) { source =>
      spans(sorted).flatMap { span =>
        val start = span.head.start
        val length = span.map(_.end).max - start
        val part = source.read(start, length.toInt)
        span.map { range =>
          ChunkBytes(range.leaf, byLeaf(range.leaf), part.bytes, (range.start - part.start).toInt)
        }
      }
    }
  }

  private def readFooter(ref: ObjectRef): ParquetFooter = {
    val start = ref.length - ref.footerLength
    val part = withBytes(ref)(_.read(start, ref.footerLength))
    val offset = (start - part.start).toInt
    val digest = Hex.encodeHexString(Sha256.digest(part.bytes, offset, ref.footerLength))
    if (!MessageDigest.isEqual(digest.getBytes, ref.footerSha256.getBytes))
      throw unlike(ref, "its footer's digest does not agree")
    ParquetFooter.read(part.bytes, offset, ref.footerLength)
  }

  private def withBytes[T](ref: ObjectRef)(use: ObjectBytes => T): T = {
    val bytes = if (objects.isLocal) new LocalBytes(objects, ref) else new RemoteBytes(objects, ref)
    try use(bytes)
    finally bytes.close()
  }

  /** Damage that the bytes themselves show: they are read again at the next question. */
  private def unlike(ref: ObjectRef, damage: String): DamagedObjectException = {
    if (!objects.isLocal) RemoteBytes.forget(objects, ref)
    damaged(ref, damage)
  }

  /** Runs a read: failures are damage of that object, unless the storage cannot be read. */
  def asDamage[T](ref: ObjectRef)(body: => T): T =
    try body
    catch {
      case e: EOFException => throw new DamagedObjectException(ref.name, "it is shorter than written", e)
      case e: FileNotFoundException => throw new DamagedObjectException(ref.name, "it is missing", e)
      case e: IOException => throw e
      case e: StatisticsException => throw e
      case e: RuntimeException => throw new DamagedObjectException(ref.name, String.valueOf(e.getMessage), e)
    }
}

private[statistics] object ObjectReader {
  private val MaxBytes = Contract.limit("decoded_bytes")
  private val FewBytes = Contract.limit("decoded_few")
  private val MostExpansion = Contract.limit("decoded_expansion")
  private val Gap = 32 << 10 // bytes of other columns that are cheaper to read than another request

  private final case class ByteRange(leaf: Int, start: Long, length: Int) {
    def end: Long = start + length
  }

  /** A column chunk, or a part of one, in bytes that were read. */
  private final case class ChunkBytes(leaf: Int, chunk: ColumnChunk, bytes: Array[Byte], offset: Int) {
    def pages(ref: ObjectRef, footer: ParquetFooter): ChunkPages =
      new ChunkPages(ref.name, chunk, footer.leaves(leaf), bytes, offset)
  }

  private object ByteRange {
    def apply(leaf: Int, chunk: ColumnChunk): ByteRange =
      ByteRange(leaf, chunk.start, Math.toIntExact(chunk.length))
  }

  /** The most bytes of a decoded object, by its length. */
  private def mostBytes(length: Long): Long = math.min(MaxBytes, FewBytes + MostExpansion * length)

  private def damaged(ref: ObjectRef, damage: String): DamagedObjectException =
    new DamagedObjectException(ref.name, damage)

  private def spans(ranges: Seq[ByteRange]): Seq[Seq[ByteRange]] =
    ranges.foldLeft(List.empty[List[ByteRange]]) {
      case (last :: before, range)
          if range.start - last.head.end <= Gap && range.end - last.last.start < Int.MaxValue / 2 =>
        (range :: last) :: before
      case (spans, range) => List(range) :: spans
    }.map(_.reverse)
}
