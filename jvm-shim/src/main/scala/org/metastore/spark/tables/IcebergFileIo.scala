package org.metastore.spark.tables

import java.io.{EOFException, FileNotFoundException, InputStream, IOException}

import scala.collection.JavaConverters._

import org.apache.hadoop.fs.Path

import org.metastore.spark.statistics.objects.{OpenFile, StoreFile, StoreFiles}

/**
 * Files beside an Iceberg table, read by the table's own FileIO. It has the keys that the catalog handed out
 * with the table, renews them, and signs requests if the catalog requires it.
 */
private[tables] final class IcebergFileIo private (table: AnyRef) extends StoreFiles {
  // The table stays referenced, too: catalogs close a FileIO when its table is no longer in use.
  private val io = Reflection.call[AnyRef](table, "io")

  import IcebergFileIo._
  import Reflection.{call, list => listOf}

  override val areLocal: Boolean = false
  override def owner: AnyRef = io

  override def list(folder: Path): Seq[StoreFile] = listFolder(io, folder)

  override def open(path: Path, length: Long): OpenFile = asIOException {
    val file = call[AnyRef](io, "newInputFile", path.toString, java.lang.Long.valueOf(length))
    new OpenStream(call[InputStream](file, "newStream"))
  }

  /**
   * The properties of the FileIO for a location, with the keys that open it now.
   *
   * A catalog may hand out separate keys for some prefixes: those of the longest prefix of the location
   * count.
   */
  def properties(location: String): Map[String, String] = {
    val properties =
      try mapOf(io, "properties")
      catch { case _: UnsupportedOperationException => Map.empty[String, String] }
    val matching = credentials.filter(credential => location.startsWith(prefixOf(credential)))
    if (matching.isEmpty) properties
    else properties ++ mapOf(matching.maxBy(prefixOf(_).length), "config")
  }

  /** The prefixes with keys of their own, without those of all buckets, such as `s3`. */
  def prefixes: Seq[String] = credentials.map(prefixOf).filter(_.split("/").length > 2)

  /** The FileIO that reads a location. */
  def reader(location: String): AnyRef = readerOf(io, location)

  private def credentials: Seq[AnyRef] =
    if (Reflection.has(io, "credentials")) listOf(io, "credentials") else Nil

  private def prefixOf(credential: AnyRef): String = call[String](credential, "prefix")

  private def mapOf(target: AnyRef, name: String): Map[String, String] =
    call[java.util.Map[String, String]](target, name).asScala.toMap
}

private[tables] object IcebergFileIo {
  private val ThroughHadoop = "org.apache.iceberg.hadoop.HadoopFileIO"
  private val Resolving = "org.apache.iceberg.io.ResolvingFileIO"
  private val Listing = "org.apache.iceberg.io.SupportsPrefixOperations"
  private val Ranges = "org.apache.iceberg.io.RangeReadable"
  private val NotFound = Set("NotFoundException", "NoSuchKeyException")

  /** The FileIO of a table, if it reads a location without Hadoop and can list it. */
  def fromTable(table: AnyRef, location: String): Option[IcebergFileIo] = {
    val io = Reflection.call[AnyRef](table, "io")
    try
      if (isA(io, Listing) && readerOf(io, location).getClass.getName != ThroughHadoop) {
        Some(new IcebergFileIo(table))
      } else None
    catch { case _: RuntimeException | _: LinkageError => None } // its libraries are not there
  }

  /** The FileIO that reads a location. */
  private def readerOf(io: AnyRef, location: String): AnyRef =
    if (io.getClass.getName == Resolving) Reflection.call[AnyRef](io, "io", location) else io

  /** The files directly in a folder. */
  def listFolder(io: AnyRef, folder: Path): Seq[StoreFile] = asIOException {
    val below = Reflection.list(io, "listPrefix", s"$folder/").map { file =>
      StoreFile(
        pathOf(Reflection.call[String](file, "location"), folder),
        Reflection.call[Long](file, "size"),
        Reflection.call[Long](file, "createdAtMillis"))
    }
    below.filter(_.path.getParent == folder)
  }

  /** The path of a listed file: Azure's are listed without container and account. */
  private def pathOf(location: String, folder: Path): Path =
    if (location.contains("://")) new Path(location)
    else new Path(folder.toUri.getScheme, folder.toUri.getAuthority, s"/${location.stripPrefix("/")}")

  private def isA(instance: AnyRef, interface: String): Boolean =
    Supertypes.interfacesOf(instance.getClass).exists(_.getName == interface)

  /** Turns Iceberg's errors of a store, which all extend RuntimeException, into IOExceptions. */
  def asIOException[T](body: => T): T =
    try body
    catch {
      case e: RuntimeException if NotFound(e.getClass.getSimpleName) =>
        throw new FileNotFoundException(e.getMessage).initCause(e)
      case e: RuntimeException => throw new IOException(e.getMessage, e)
    }

  /** A stream of Iceberg. If it reads ranges, a read requests exactly its bytes from the store. */
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

    override def close(): Unit = asIOException(stream.close())
  }
}
