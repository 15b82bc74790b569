package org.metastore.spark.store

import java.util.Arrays
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.reflect.ClassTag

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** A block joined with a list of files: `ordinals(i)` is the block's ordinal of the list's file i, or -1. */
private[store] final class JoinedBlock(val block: Block, val rows: Array[Long], val ordinals: Array[Int]) {
  val matches: Int = {
    var found = 0
    var i = 0
    while (i < ordinals.length) {
      if (ordinals(i) >= 0) found += 1
      i += 1
    }
    found
  }

  def isLike(other: JoinedBlock): Boolean = block.files == other.block.files && Arrays.equals(ordinals, other.ordinals)
}

/**
 * All blocks of one version joined with a list of files.
 *
 * @param failure why a block could not be read
 */
private[store] final class JoinedFiles(
    val fingerprint: String, length: Int, val blocks: IndexedSeq[JoinedBlock], val failure: Option[Reason]) extends Weighed {
  private lazy val number = JoinedFiles.counter.incrementAndGet()

  /** By list of a snapshot's files: where each known file stands in it, or -1. */
  val listed = new ConcurrentHashMap[ObjectRef, Array[Int]]()

  val rows: Array[Long] = Filled.longs(length, -1)
  val known: Array[Boolean] = new Array[Boolean](length)
  blocks.foreach { block =>
    var i = 0
    while (i < length) {
      val file = block.ordinals(i)
      if (file >= 0) {
        known(i) = true
        if (block.rows(file) >= 0) rows(i) = block.rows(file)
      }
      i += 1
    }
  }
  val knownFiles: Int = known.count(identity)

  override def weight: Long = length * (9L + 4L * blocks.length)

  /**
   * The same join, as an earlier scan made it, or this one for later scans: what is aligned with it serves them all. A scan's
   * list of files is new in every query, and mostly the same.
   */
  def remembered: JoinedFiles =
    if (failure.isDefined) this
    else {
      val key = s"joined:$fingerprint:$length:${blocks.map(block => Arrays.hashCode(block.ordinals)).hashCode}"
      StatisticsCache.get[JoinedFiles](key).filter(isLike).getOrElse {
        StatisticsCache.put(key, this, weight)
        this
      }
    }

  private def isLike(other: JoinedFiles): Boolean =
    fingerprint == other.fingerprint && rows.length == other.rows.length && blocks.length == other.blocks.length &&
      blocks.zip(other.blocks).forall { case (one, another) => one.isLike(another) }

  /** What was aligned with these files for an earlier scan and is still in memory. */
  def kept[T <: AnyRef](column: (String, DataType))(implicit kind: ClassTag[T]): Option[T] =
    StatisticsCache.get[T](keyOf(column, kind))

  /** Keeps what was aligned with these files. */
  def keep[T <: Weighed](column: (String, DataType), aligned: T)(implicit kind: ClassTag[T]): Unit =
    if (failure.isEmpty) StatisticsCache.put(keyOf(column, kind), aligned, aligned.weight)

  private def keyOf(column: (String, DataType), kind: ClassTag[_]): String =
    s"${kind.runtimeClass.getSimpleName}:$number:${column._2.catalogString}:${column._1}"
}

private object JoinedFiles {
  private val counter = new AtomicLong
}
