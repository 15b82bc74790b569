package org.metastore.spark.files

import java.net.URI

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, FSInputStream, Path, RawLocalFileSystem}

import org.metastore.spark.reason.Injection

/** Local files behind another scheme, in which the requests of a store fail where a test wants it. */
class FailingFiles extends RawLocalFileSystem {
  private var uri: URI = _

  override def initialize(name: URI, conf: Configuration): Unit = {
    Injection.pass("connect")
    uri = URI.create(s"${name.getScheme}://${name.getAuthority}")
    super.initialize(name, conf)
  }

  // The constructor of the class above asks for it.
  override def getUri: URI = Option(uri).getOrElse(super.getUri)

  override def getScheme: String = getUri.getScheme

  override def checkPath(path: Path): Unit = ()

  override def listStatus(folder: Path): Array[FileStatus] = {
    Injection.pass(s"list ${folder.getName}")
    super.listStatus(folder)
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    val kind = path.getParent.getName
    Injection.pass(s"open $kind")
    new FSDataInputStream(new FailingStream(super.open(path, bufferSize), s"read $kind"))
  }
}

private class FailingStream(stream: FSDataInputStream, place: String) extends FSInputStream {
  override def read(): Int = {
    Injection.pass(place)
    stream.read()
  }

  override def read(bytes: Array[Byte], offset: Int, length: Int): Int = {
    Injection.pass(place)
    stream.read(bytes, offset, length)
  }

  override def seek(position: Long): Unit = stream.seek(position)
  override def getPos: Long = stream.getPos
  override def seekToNewSource(position: Long): Boolean = stream.seekToNewSource(position)
  override def close(): Unit = stream.close()
}
