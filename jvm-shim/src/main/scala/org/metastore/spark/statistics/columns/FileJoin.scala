package org.metastore.spark.statistics.columns

import java.lang.ref.SoftReference
import java.util.Arrays
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{AtomicLong, AtomicReference}

import scala.reflect.ClassTag

import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.cache.StatisticsCache
import org.metastore.spark.statistics.objects.{Block, FileKey, Fill, Gather, ObjectRef}

/** A block joined with a list of files: `ordinals(i)` is the block's ordinal of the list's file i, or -1. */
private[statistics] final class BlockJoin(
    val block: Block,
    val counted: BlockRows,
    val ordinals: Array[Int]) {
  def rows: Array[Long] = counted.files

  val matches: Int = {
    var count = 0
    var i = 0
    while (i < ordinals.length) {
      if (ordinals(i) >= 0) count += 1
      i += 1
    }
    count
  }

  /** Whether the list is that of the block's files, in their order. */
  def isWhole(length: Int): Boolean = {
    var i = 0
    while (i < length && ordinals(i) == i) i += 1
    i == length && rows.length == length
  }

  /** The block joined with some of the list's files. */
  def at(selected: Array[Int]): BlockJoin = new BlockJoin(block, counted, Gather(ordinals, selected))

  def isLike(other: BlockJoin): Boolean =
    block.files == other.block.files && Arrays.equals(ordinals, other.ordinals)
}

/** All blocks of one version joined with a list of files. */
private[statistics] final class FileJoin(
    val fingerprint: String,
    length: Int,
    val blocks: IndexedSeq[BlockJoin],
    val failure: Option[Reason])
  extends CacheWeight {
  private lazy val number = FileJoin.counter.incrementAndGet()

  /** By list of a snapshot's files: the index of each file of the scan in it, or -1. */
  val placesInLists = new ConcurrentHashMap[ObjectRef, Array[Int]]()

  val rows: Array[Long] = blocks match {
    case Seq(only) if only.isWhole(length) => only.rows
    case _ => Fill.longs(length, -1)
  }
  val isKnown: Array[Boolean] = new Array[Boolean](length)
  val knownFiles: Int = blocks.map(join).sum

  /** The number of files that the block knows and no block before it. */
  private def join(block: BlockJoin): Int = {
    val (ordinals, counted) = (block.ordinals, block.rows)
    val rowsOf = rows
    var (added, i) = (0, 0)
    while (i < ordinals.length) {
      val file = ordinals(i)
      if (file >= 0) {
        if (!isKnown(i)) added += 1
        isKnown(i) = true
        if (counted(file) >= 0 && (counted ne rowsOf)) rowsOf(i) = counted(file)
      }
      i += 1
    }
    added
  }

  /** The join with some of the list's files. */
  def at(selected: Array[Int]): FileJoin =
    new FileJoin(fingerprint, selected.length, blocks.map(_.at(selected)), failure)

  override def weight: Long = length * (9L + 4L * blocks.length)

  /**
   * An equal join from the cache, or this one, which is then cached: columns aligned with it serve all scans.
   */
  def cachedOrSelf: FileJoin =
    if (failure.isDefined) this
    else {
      val ordinals = blocks.map(block => Arrays.hashCode(block.ordinals))
      val key = s"joined:$fingerprint:$length:${ordinals.hashCode}"
      StatisticsCache.get[FileJoin](key).filter(isLike).getOrElse {
        StatisticsCache.put(key, this, weight)
        this
      }
    }

  private def isLike(other: FileJoin): Boolean =
    fingerprint == other.fingerprint && rows.length == other.rows.length &&
      blocks.corresponds(other.blocks)(_.isLike(_))

  /** The column aligned with these files for an earlier scan, if it is still in memory. */
  def findAligned[T <: AnyRef](column: (String, DataType))(implicit kind: ClassTag[T]): Option[T] =
    StatisticsCache.get[T](keyOf(column, kind))

  /** Caches a column aligned with these files. */
  def keepAligned[T <: CacheWeight](column: (String, DataType), aligned: T)(implicit
      kind: ClassTag[T]): Unit =
    if (failure.isEmpty) StatisticsCache.put(keyOf(column, kind), aligned, aligned.weight)

  private def keyOf(column: (String, DataType), kind: ClassTag[_]): String =
    s"${kind.runtimeClass.getSimpleName}:$number:${column._2.catalogString}:${column._1}"
}

private object FileJoin {
  private val counter = new AtomicLong
}

/**
 * The data files of one scan before pruning, in the scan's order. Statistics of them are arrays of this
 * length. Use one instance for each snapshot: the join with the statistics is cached by its identity.
 *
 * @param modified modification times or versions of the rows where they are part of the key, -1 for a file
 *                 without; null if no file has one
 */
final class FileList(val paths: Array[String], val sizes: Array[Long], val modified: Array[Long]) {
  require(paths.length == sizes.length, "one size a path")
  require(modified == null || modified.length == paths.length, "one modification time a path")

  def this(paths: Array[String], sizes: Array[Long]) = this(paths, sizes, null)

  def length: Int = paths.length

  /** The last part of a file's key; -1 for a file without. */
  def modifiedAt(file: Int): Long = if (modified == null) -1L else modified(file)

  /** The list of some of the files, in their order. */
  def at(selected: Array[Int]): FileList =
    new FileList(
      selected.map(paths(_)),
      Gather(sizes, selected),
      if (modified == null) null else Gather(modified, selected))

  private val join = new AtomicReference[SoftReference[FileJoin]](new SoftReference(null))

  /** The join of this list with that version of the statistics, if it is the last one that was made. */
  private[statistics] def findJoin(fingerprint: String): Option[FileJoin] =
    Option(join.get.get).filter(_.fingerprint == fingerprint)

  private[statistics] def keep(joined: FileJoin): Unit = join.set(new SoftReference(joined))
}

object FileList {

  /** The list of these data files. */
  def fromKeys(files: Seq[FileKey]): FileList = {
    val isModifiedKnown = files.exists(_.modified.isDefined)
    val modified = if (isModifiedKnown) files.map(_.modified.getOrElse(-1L)).toArray else null
    new FileList(files.map(_.path).toArray, files.map(_.size).toArray, modified)
  }
}
