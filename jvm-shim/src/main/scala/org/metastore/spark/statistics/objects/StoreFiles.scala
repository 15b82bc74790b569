package org.metastore.spark.statistics.objects

import java.io.{Closeable, FileNotFoundException, IOException}
import java.util.concurrent.ExecutionException

import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataInputStream, Path}

/** Reads the files of a store: through Hadoop, or as the table itself reads its files. */
trait StoreFiles {

  /** Whether the files lie on this machine's disk, so that links and devices may lie among them. */
  def areLocal: Boolean

  /** The owner of the access, with its credentials: another owner may read other files. */
  def owner: AnyRef

  /** The files directly in a folder; none if the folder is missing. */
  def list(folder: Path): Seq[StoreFile]

  /** Opens a file whose length is known. */
  def open(path: Path, length: Long): OpenFile
}

/** A file of a store. */
final case class StoreFile(path: Path, length: Long, modified: Long) {
  def name: String = path.getName
}

/** An open file, of which ranges are read. */
trait OpenFile extends Closeable {

  /** Fills an array with the bytes from a position on. */
  def readFully(position: Long, bytes: Array[Byte]): Unit
}

/** The files of a store as Hadoop's file systems read them. */
private[spark] final class HadoopFiles(connect: => FileSystem) extends StoreFiles {
  private lazy val system = connect

  override def areLocal: Boolean = system.getUri.getScheme == "file"
  override def owner: AnyRef = system

  override def list(folder: Path): Seq[StoreFile] = {
    val entries =
      try system.listStatus(folder)
      catch { case _: FileNotFoundException => Array.empty[FileStatus] }
    for (entry <- entries.toSeq if entry.isFile) yield toStoreFile(entry)
  }

  override def open(path: Path, length: Long): OpenFile =
    try {
      val stream = system.openFile(path)
        .opt("fs.option.openfile.length", length.toString)
        .opt("fs.option.openfile.read.policy", "random")
        .build().get()
      new HadoopFiles.OpenStream(stream)
    } catch { case e: ExecutionException => throw causeOf(e) }

  private def toStoreFile(status: FileStatus): StoreFile =
    StoreFile(status.getPath, status.getLen, status.getModificationTime)

  private def causeOf(e: ExecutionException): Throwable = e.getCause match {
    case cause: IOException => cause
    case cause => new IOException(cause)
  }
}

private object HadoopFiles {
  final class OpenStream(stream: FSDataInputStream) extends OpenFile {
    override def readFully(position: Long, bytes: Array[Byte]): Unit = stream.readFully(position, bytes)
    override def close(): Unit = stream.close()
  }
}
