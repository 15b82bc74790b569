package org.metastore.spark.statistics.objects

import java.io.IOException
import java.nio.file.{Files, FileSystemException, InvalidPathException, LinkOption, Paths}
import java.nio.file.attribute.BasicFileAttributes

import org.apache.hadoop.fs.Path

import org.metastore.spark.reason.DamagedObjectException
import org.metastore.spark.statistics.cache.MemoryOnly

/** A folder within a store, and the plain files in it; nothing else there is ever opened. */
private[statistics] final class StoreFolder(storeFiles: StoreFiles, store: Path, name: String) {
  import StoreFolder._

  private val folder = new Path(store, name)

  /** The location of the folder. */
  def uri: String = folder.toString

  /** Whether it is on this machine's disk, where a request costs little. */
  def isLocal: Boolean = storeFiles.areLocal

  /** The listed files, none if there is no folder; opening one checks that it is a plain file. */
  def files(): Seq[StoreFile] = {
    MemoryOnly.requireStore()
    requireFolders()
    storeFiles.list(folder)
  }

  /** Opens a plain file whose length is known. */
  def open(name: String, length: Long): OpenFile = {
    MemoryOnly.requireStore()
    requireFolders()
    val path = new Path(folder, name)
    if (storeFiles.areLocal)
      for (file <- attributes(path) if !file.isRegularFile)
        throw new DamagedObjectException(name, s"it is ${kind(file)}")
    storeFiles.open(path, length)
  }

  private def requireFolders(): Unit =
    if (storeFiles.areLocal)
      for {
        path <- Seq(store, folder)
        file <- attributes(path)
        if !file.isDirectory
      } throw new IOException(s"$path is ${kind(file)}: only plain files in plain folders are statistics")
}

private object StoreFolder {

  /**
   * Attributes of a local path; `None` if there is nothing, or if Java cannot read them: opening then fails.
   */
  private def attributes(path: Path): Option[BasicFileAttributes] =
    try Some(Files.readAttributes(
        Paths.get(path.toUri.getPath),
        classOf[BasicFileAttributes],
        LinkOption.NOFOLLOW_LINKS))
    catch { case _: FileSystemException | _: InvalidPathException => None }

  private def kind(file: BasicFileAttributes): String =
    if (file.isSymbolicLink) "a symbolic link"
    else if (file.isDirectory) "a folder"
    else if (file.isRegularFile) "a plain file"
    else "a FIFO, a socket or a device"
}
