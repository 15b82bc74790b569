package org.metastore.spark.tables

import java.io.{FileNotFoundException, InputStream}

import org.apache.hadoop.fs.Path

import org.metastore.spark.statistics.objects.StoreFile

/**
 * Opens a folder on S3 by Iceberg's S3FileIO, whose requests a catalog signs. Tasks get a copy of the FileIO.
 */
private[tables] final class IcebergFolderAccess(io: AnyRef, uri: String) extends FolderAccess {
  override def open(): WritableFolder = new IcebergFolder(io, uri)
}

private final class IcebergFolder(io: AnyRef, uri: String) extends WritableFolder {
  import IcebergFileIo.{asIOException, listFolder}
  import IcebergFolder._
  import Reflection.{call, callStatic, load}

  override def list(below: String): Seq[StoreFile] = listFolder(io, new Path(s"$uri/$below"))

  override def size(path: String): Long =
    try asIOException(call[Long](inputFile(path), "getLength"))
    catch { case _: FileNotFoundException => -1L }

  override def part(path: String, start: Long, length: Int): Array[Byte] =
    try asIOException(read(path, start, length))
    catch { case _: FileNotFoundException => null }

  private def read(path: String, start: Long, length: Int): Array[Byte] = {
    val stream = call[InputStream](inputFile(path), "newStream")
    try {
      call[Any](stream, "seek", java.lang.Long.valueOf(start))
      stream.readNBytes(length)
    } catch { case e: RuntimeException if hasStatus(e, RangeIsBehindEnd) => Array.emptyByteArray }
    finally stream.close()
  }

  override def put(path: String, data: Array[Byte]): Unit = asIOException(write(path, data, Nil))

  override def create(path: String, data: Array[Byte]): Boolean = asIOException {
    try {
      write(path, data, Seq("ifNoneMatch" -> "*"))
      true
    } catch { case e: RuntimeException if hasStatus(e, Exists) => false }
  }

  /**
   * Writes in one request. Iceberg's own output file checks and writes in two, and may store a part of the
   * bytes.
   */
  private def write(path: String, data: Array[Byte], conditions: Seq[(String, String)]): Unit = {
    val target = new Path(s"$uri/$path").toUri
    val client = call[AnyRef](io, "client", s"$uri/$path")
    val sdk = client.getClass.getClassLoader
    val request = callStatic[AnyRef](load(s"$Sdk.services.s3.model.PutObjectRequest", sdk), "builder")
    val location = Seq("bucket" -> target.getAuthority, "key" -> target.getPath.stripPrefix("/"))
    for ((name, value) <- location ++ conditions) call[AnyRef](request, name, value)
    val body = callStatic[AnyRef](load(s"$Sdk.core.sync.RequestBody", sdk), "fromBytes", data)
    call[AnyRef](client, "putObject", call[AnyRef](request, "build"), body)
    ()
  }

  override def delete(path: String): Unit = asIOException(call[Any](io, "deleteFile", s"$uri/$path"))

  private def inputFile(path: String) = call[AnyRef](io, "newInputFile", s"$uri/$path")

  private def hasStatus(error: RuntimeException, status: Int): Boolean =
    Reflection.has(error, "statusCode") && call[Int](error, "statusCode") == status
}

private object IcebergFolder {
  private val Sdk = "software.amazon.awssdk"
  private val Exists = 412
  private val RangeIsBehindEnd = 416
}
