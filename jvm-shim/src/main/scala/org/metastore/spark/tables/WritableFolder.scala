package org.metastore.spark.tables

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.metastore.spark.statistics.objects.StoreFile

/**
 * A folder of a store, which need not exist. Python calls these methods, and has the same names and rules.
 */
trait WritableFolder {

  /**
   * The files directly in a subfolder, as JSON: name, size, milliseconds of the last change by the store's
   * clock.
   */
  final def names(below: String): String = {
    val rows = list(below).map(file => Seq[Any](file.name, file.length, file.modified).asJava)
    WritableFolder.json.writeValueAsString(rows.asJava)
  }

  /** The files directly in a subfolder; none if the folder is missing. */
  def list(below: String): Seq[StoreFile]

  /** The size of a file; -1 if it is missing. */
  def size(path: String): Long

  /** At most `length` bytes of a file, fewer if it ends before or is a folder; null if it is missing. */
  def part(path: String, start: Long, length: Int): Array[Byte]

  /** Writes a file as a whole or not at all; replaces a file of the same name. */
  def put(path: String, data: Array[Byte]): Unit

  /** Writes a file as a whole unless it exists; returns whether it did. */
  def create(path: String, data: Array[Byte]): Boolean

  def delete(path: String): Unit
}

private object WritableFolder {
  private val json = new ObjectMapper()
}

/** Opens a folder of a store, in the driver and in tasks. */
trait FolderAccess extends Serializable {
  def open(): WritableFolder
}
