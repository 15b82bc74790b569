package org.metastore.spark.tables

import java.lang.ref.Cleaner
import java.util.{Collections, WeakHashMap}

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

/**
 * File systems of tables that have settings of their own. Hadoop caches one file system for each bucket,
 * whatever its settings: that one may have the keys of another table.
 */
private[tables] object OwnFileSystems {
  private val cleaner = Cleaner.create()
  private val systems = Collections.synchronizedMap(new WeakHashMap[AnyRef, FileSystem])

  /**
   * The file system of a table; it is closed after `owner` is gone, which the format holds as long as the
   * table.
   */
  def get(owner: AnyRef, root: Path, conf: => Configuration): FileSystem =
    systems.computeIfAbsent(owner, _ => open(owner, root, conf))

  private def open(owner: AnyRef, root: Path, conf: Configuration): FileSystem = {
    val system = FileSystem.newInstance(root.toUri, conf)
    cleaner.register(owner, () => Try(system.close()))
    system
  }
}
