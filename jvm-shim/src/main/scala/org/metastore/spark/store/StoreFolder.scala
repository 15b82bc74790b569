package org.metastore.spark.store

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{Files, FileSystemException, InvalidPathException, LinkOption, Paths}
import java.nio.file.attribute.BasicFileAttributes

import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataInputStream, Path}

/**
 * A folder within a store, and the plain files in it; nothing else there is ever opened.
 *
 * On a local disk whoever can write a table's folder can put a FIFO there, on which opening waits for ever, or a symbolic link
 * to the store of another table. Only the way to the store may lead through links. Hadoop's other file systems have neither.
 *
 * @param store the folder of the store
 * @param name  `log` or `objects`
 */
private[store] final class StoreFolder(fs: FileSystem, store: Path, name: String) {
  import StoreFolder._

  private val folder = new Path(store, name)
  private val isLocal = fs.getUri.getScheme == "file"

  /** What lists as files, none where there is no folder; whether one is plain is asked when it is opened. */
  def files(): Seq[FileStatus] = {
    requireFolders()
    val entries =
      try fs.listStatus(folder)
      catch { case _: FileNotFoundException => Array.empty[FileStatus] }
    entries.toSeq.filter(_.isFile)
  }

  /** The same of one name. */
  def file(name: String): Option[FileStatus] =
    try Some(fs.getFileStatus(new Path(folder, name))).filter(_.isFile)
    catch { case _: FileNotFoundException => None }

  /**
   * Opens a plain file whose length is known.
   *
   * @throws DamagedObjectException if it is something else
   */
  def open(name: String, length: Long): FSDataInputStream = {
    requireFolders()
    val path = new Path(folder, name)
    if (isLocal) attributes(path).filterNot(_.isRegularFile).foreach { found =>
      throw new DamagedObjectException(name, s"it is ${kind(found)}")
    }
    try fs.openFile(path)
      .opt("fs.option.openfile.length", length.toString)
      .opt("fs.option.openfile.read.policy", "random")
      .build().get()
    catch { case e: java.util.concurrent.ExecutionException => throw unwrapped(e) }
  }

  private def requireFolders(): Unit =
    if (isLocal) Seq(store, folder).foreach { path =>
      attributes(path).filterNot(_.isDirectory)
        .foreach(found => throw new IOException(s"$path is ${kind(found)}: only plain files in plain folders are statistics"))
    }

}

private object StoreFolder {
  /** What lies at a local path; `None` where there is nothing, or where Java does not get at it, as opening will tell. */
  private def attributes(path: Path): Option[BasicFileAttributes] =
    try Some(Files.readAttributes(Paths.get(path.toUri.getPath), classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS))
    catch { case _: FileSystemException | _: InvalidPathException => None }

  private def kind(found: BasicFileAttributes): String =
    if (found.isSymbolicLink) "a symbolic link"
    else if (found.isDirectory) "a folder"
    else if (found.isRegularFile) "a plain file"
    else "a FIFO, a socket or a device"

  private def unwrapped(e: java.util.concurrent.ExecutionException): Throwable = e.getCause match {
    case cause: IOException => cause
    case cause => new IOException(cause)
  }
}
