package org.metastore.spark.tables

import java.io.{EOFException, FileNotFoundException, InputStream, IOException}

import scala.collection.JavaConverters._

import org.apache.hadoop.fs.Path

import org.metastore.spark.statistics.objects.{OpenFile, StoreFile, StoreFiles}

/**
 * Files beside an Iceberg table, read by the table's own FileIO: it has the keys that the catalog handed out with the table,
 * renews them, and signs requests as the catalog asks.
 */
private[tables] final class IcebergFileIo private (io: AnyRef) extends StoreFiles {
  import IcebergFileIo._
  import Reflection.{call, list => listOf}

  override val areLocal: Boolean = false

  override def list(folder: Path): Seq[StoreFile] = asIOException {
    val below = listOf(io, "listPrefix", s"$folder/").map { file =>
      StoreFile(
        new Path(call[String](file, "location")),
        call[Long](file, "size"),
        call[Long](file, "createdAtMillis"))
    }
    below.filter(_.path.getParent == folder)
  }

  override def find(path: Path): Option[StoreFile] = asIOException {
    val file = call[AnyRef](io, "newInputFile", path.toString)
    // FileIO tells no time of change.
    if (call[Boolean](file, "exists")) Some(StoreFile(path, call[Long](file, "getLength"), modified = 0))
    else None
  }

  override def open(path: Path, length: Long): OpenFile = asIOException {
    val file = call[AnyRef](io, "newInputFile", path.toString, java.lang.Long.valueOf(length))
    new OpenStream(call[InputStream](file, "newStream"))
  }

  /**
   * The properties of the FileIO for a location, with the keys that open it now.
   *
   * A catalog may hand out keys for some prefixes apart: those of the longest prefix of the location count.
   */
  def properties(location: String): Map[String, String] = {
    val own = mapOf(io, "properties")
    val credentials = if (Reflection.has(io, "credentials")) listOf(io, "credentials") else Nil
    val ofLocation = credentials.filter(credential => location.startsWith(prefixOf(credential)))
    if (ofLocation.isEmpty) own else own ++ mapOf(ofLocation.maxBy(prefixOf(_).length), "config")
  }

  private def prefixOf(credential: AnyRef): String = call[String](credential, "prefix")

  private def mapOf(target: AnyRef, name: String): Map[String, String] =
    call[java.util.Map[String, String]](target, name).asScala.toMap
}

private[tables] object IcebergFileIo {
  private val ThroughHadoop = "org.apache.iceberg.hadoop.HadoopFileIO"
  private val Resolving = "org.apache.iceberg.io.ResolvingFileIO"
  private val Listing = "org.apache.iceberg.io.SupportsPrefixOperations"
  private val Ranges = "org.apache.iceberg.io.RangeReadable"
  private val NotFound = "org.apache.iceberg.exceptions.NotFoundException"

  /** A table's FileIO, where it reads what lies at a location by ways of its own and can list it. */
  def find(io: AnyRef, location: String): Option[IcebergFileIo] =
    if (isA(io, Listing) && readerOf(io, location) != ThroughHadoop) Some(new IcebergFileIo(io)) else None

  /** The class that reads what lies at a location. */
  private def readerOf(io: AnyRef, location: String): String =
    if (io.getClass.getName == Resolving) Reflection.call[Class[_]](io, "ioClass", location).getName
    else io.getClass.getName

  private def isA(instance: AnyRef, interface: String): Boolean =
    Supertypes.interfacesOf(instance.getClass).exists(_.getName == interface)

  /** Iceberg's errors of a store as Java's: all of them extend RuntimeException. */
  private def asIOException[T](body: => T): T =
    try body
    catch {
      case e: RuntimeException if e.getClass.getName == NotFound =>
        throw new FileNotFoundException(e.getMessage).initCause(e)
      case e: RuntimeException => throw new IOException(e.getMessage, e)
    }

  /** A stream of Iceberg. One that reads ranges asks the store for no more bytes than these. */
  private final class OpenStream(stream: InputStream) extends OpenFile {
    private val readsRanges = isA(stream, Ranges)

    override def readFully(position: Long, bytes: Array[Byte]): Unit = asIOException {
      val start = java.lang.Long.valueOf(position)
      if (readsRanges) Reflection.call[Any](stream, "readFully", start, bytes)
      else {
        Reflection.call[Any](stream, "seek", start)
        if (stream.readNBytes(bytes, 0, bytes.length) < bytes.length) throw new EOFException(s"$position")
      }
    }

    override def close(): Unit = stream.close()
  }
}
