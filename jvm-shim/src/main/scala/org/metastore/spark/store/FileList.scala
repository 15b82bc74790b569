package org.metastore.spark.store

import java.lang.ref.SoftReference
import java.util.concurrent.atomic.AtomicReference

/**
 * The data files of one scan before pruning, in the scan's order: everything about them is then an array of this length.
 *
 * Keep one instance per snapshot and ask with the same instance again: the join with the statistics is cached by its
 * identity.
 *
 * @param paths    as docs/format.md, "Identity": Iceberg `file_path` byte for byte; else decoded, relative to the table
 * @param sizes    bytes
 * @param modified modification times in milliseconds where they are part of the key (Parquet tables), else null
 */
final class FileList(val paths: Array[String], val sizes: Array[Long], val modified: Array[Long]) {
  require(paths.length == sizes.length, "one size a path")
  require(modified == null || modified.length == paths.length, "one modification time a path")

  def this(paths: Array[String], sizes: Array[Long]) = this(paths, sizes, null)

  def length: Int = paths.length

  /** Some of the files, in their order. */
  def at(places: Array[Int]): FileList =
    new FileList(places.map(paths(_)), Gather.longs(sizes, places), if (modified == null) null else Gather.longs(modified, places))

  private val join = new AtomicReference[SoftReference[FileJoin]](new SoftReference(null))

  /** The join of this list with that version of the statistics, if it is the last one that was made. */
  private[store] def findJoin(fingerprint: String): Option[FileJoin] =
    Option(join.get.get).filter(_.fingerprint == fingerprint)

  private[store] def keep(joined: FileJoin): Unit = join.set(new SoftReference(joined))
}

object FileList {

  /** The list of these data files. */
  def of(files: Seq[FileKey]): FileList = {
    val modified = if (files.exists(_.modified.isDefined)) files.map(_.modified.getOrElse(-1L)).toArray else null // scalastyle:ignore
    new FileList(files.map(_.path).toArray, files.map(_.size).toArray, modified)
  }
}
