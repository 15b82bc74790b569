package org.metastore.spark.analyze

import java.io.{FileNotFoundException, IOException}
import java.util.UUID

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.Options.Rename

import org.apache.spark.util.SerializableConfiguration

import org.metastore.spark.statistics.objects.StoreFile
import org.metastore.spark.tables.{FolderAccess, WritableFolder}

/** Opens a folder of a Hadoop file system, with the credentials of Hadoop's settings. */
final class HadoopAccess(uri: String, settings: SerializableConfiguration) extends FolderAccess {
  def this(uri: String, conf: Configuration) = this(uri, new SerializableConfiguration(conf))

  override def open(): HadoopFolder = new HadoopFolder(uri, settings.value)
}

/** A folder of a Hadoop file system. */
final class HadoopFolder(uri: String, conf: Configuration) extends WritableFolder {
  private val folder = new Path(uri)
  private lazy val files = folder.getFileSystem(conf)
  private lazy val context = FileContext.getFileContext(folder.toUri, conf)

  /**
   * Makes the folder; returns the class of its file system, behind all mounts: not each can overwrite by a
   * rename.
   */
  def servedBy(): String = {
    files.mkdirs(folder)
    val resolved = context.resolvePath(folder)
    FileContext.getFileContext(resolved.toUri, conf).getDefaultFileSystem.getClass.getName
  }

  override def list(below: String): Seq[StoreFile] = {
    val entries =
      try files.listStatus(new Path(folder, below)).toSeq
      catch { case _: FileNotFoundException => Nil }
    for (file <- entries if file.isFile)
      yield StoreFile(file.getPath, file.getLen, file.getModificationTime)
  }

  override def size(path: String): Long =
    try files.getFileStatus(new Path(folder, path)).getLen
    catch { case _: FileNotFoundException => -1L }

  override def part(path: String, start: Long, length: Int): Array[Byte] = {
    val file = new Path(folder, path)
    try {
      val stream = files.open(file)
      try {
        stream.seek(start)
        stream.readNBytes(length)
      } finally stream.close()
    } catch { case _: FileNotFoundException => if (files.exists(file)) Array.emptyByteArray else null }
  }

  override def put(path: String, data: Array[Byte]): Unit = write(path, data, Rename.OVERWRITE)

  override def create(path: String, data: Array[Byte]): Boolean =
    try {
      write(path, data, Rename.NONE)
      true
    } catch { case _: FileAlreadyExistsException => false }

  override def delete(path: String): Unit = files.delete(new Path(folder, path), false)

  private def write(path: String, data: Array[Byte], how: Rename): Unit = {
    val target = new Path(folder, path)
    val unfinished = new Path(target.getParent, s".${UUID.randomUUID}.tmp")
    try {
      val stream = files.create(unfinished, false)
      try {
        stream.write(data)
        stream.hsync() // a commit is on disks, not in the memory of three machines
      } finally stream.close()
      context.rename(unfinished, target, how)
    } catch {
      case e: IOException =>
        Try(files.delete(unfinished, false))
        throw e
    }
  }
}
