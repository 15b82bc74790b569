package org.metastore.spark.analyze

import java.io.{FileNotFoundException, IOException}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.US_ASCII
import java.util.UUID

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.Options.Rename

import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.sql.{Dataset, Row}
import org.apache.spark.util.SerializableConfiguration

/** A folder of a Hadoop file system, which need not exist: Python calls these methods, names and rules are its own. */
final class HadoopFolder(uri: String, conf: Configuration) {
  private val folder = new Path(uri)
  private lazy val files = folder.getFileSystem(conf)
  private lazy val context = FileContext.getFileContext(folder.toUri, conf)

  /** Makes the folder; the class of its file system, behind all mounts, which decides whether a rename may overwrite. */
  def servedBy(): String = {
    files.mkdirs(folder)
    val place = context.resolvePath(folder)
    FileContext.getFileContext(place.toUri, conf).getDefaultFileSystem.getClass.getName
  }

  /** Files directly in a folder below, as JSON: name, size, milliseconds of the last change by the store's clock. */
  def names(below: String): String = {
    val entries =
      try files.listStatus(new Path(folder, below)).toSeq
      catch { case _: FileNotFoundException => Nil }
    val rows = entries.filter(_.isFile).map(file =>
      Seq[Any](file.getPath.getName, file.getLen, file.getModificationTime).asJava)
    HadoopFolder.json.writeValueAsString(rows.asJava)
  }

  /** The size of a file, -1 where there is none. */
  def size(path: String): Long =
    try files.getFileStatus(new Path(folder, path)).getLen
    catch { case _: FileNotFoundException => -1L }

  /** At most `length` bytes of a file, fewer where it ends before or is a folder; null where there is none. */
  def part(path: String, start: Long, length: Int): Array[Byte] = {
    val place = new Path(folder, path)
    try {
      val stream = files.open(place)
      try {
        stream.seek(start)
        stream.readNBytes(length)
      } finally stream.close()
    } catch { case _: FileNotFoundException => if (files.exists(place)) Array.emptyByteArray else null }
  }

  /** Writes a file that is there as a whole or not at all; one of the same name gives way. */
  def put(path: String, data: Array[Byte]): Unit = write(path, data, Rename.OVERWRITE)

  /** Writes a file as a whole unless there is one, and says whether it did. */
  def create(path: String, data: Array[Byte]): Boolean =
    try {
      write(path, data, Rename.NONE)
      true
    } catch { case _: FileAlreadyExistsException => false }

  def delete(path: String): Unit = files.delete(new Path(folder, path), false)

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

private object HadoopFolder {
  private val json = new ObjectMapper()
}

/**
 * Carries objects between Python tasks and a Hadoop file system: Python has the bytes, the JVM of the executor the file
 * system. A record is the length of a name in one byte, the name of an object or nothing, and bytes.
 *
 * @param uri  folder of the store
 * @param conf Hadoop's settings, with the credentials
 */
final class HadoopObjects(uri: String, conf: Configuration) {
  import HadoopObjects._

  /** Writes the records that have a name, and passes the others on. */
  def write(records: JavaRDD[Array[Byte]]): JavaRDD[Array[Byte]] = inTasks(records) { (folder, part) =>
    part.filter { record =>
      val name = nameOf(record)
      if (name.nonEmpty) folder.put(pathOf(name), record.drop(name.length + 1))
      name.isEmpty
    }
  }

  /** Writes a column of records. */
  def write(rows: Dataset[Row]): JavaRDD[Array[Byte]] =
    write(rows.rdd.map(_.getAs[Array[Byte]](0)).toJavaRDD())

  /** Adds to each record its length in four bytes, and the bytes of the object that it names, if there is one. */
  def read(records: JavaRDD[Array[Byte]]): JavaRDD[Array[Byte]] = inTasks(records) { (folder, part) =>
    part.map { record =>
      val name = nameOf(record)
      val bytes = if (name.isEmpty) null else folder.part(pathOf(name), 0, Int.MaxValue)
      val length = ByteBuffer.allocate(Integer.BYTES).putInt(record.length).array
      length ++ record ++ Option(bytes).getOrElse(Array.emptyByteArray)
    }
  }

  private def inTasks(records: JavaRDD[Array[Byte]])(
      use: (HadoopFolder, Iterator[Array[Byte]]) => Iterator[Array[Byte]]): JavaRDD[Array[Byte]] = {
    val place = uri // tasks get the text, not this object
    val settings = shared(records.context)
    records.rdd.mapPartitions(part => use(new HadoopFolder(place, settings.value.value), part)).toJavaRDD()
  }

  /** The settings, for tasks, whose executors get this jar too. */
  private def shared(context: SparkContext) = {
    val jar = getClass.getProtectionDomain.getCodeSource.getLocation.getPath
    if (!context.isLocal && !context.listJars().exists(_.endsWith(jar.split('/').last))) context.addJar(jar)
    context.broadcast(new SerializableConfiguration(conf))
  }
}

private object HadoopObjects {
  private def nameOf(record: Array[Byte]): String = new String(record, 1, record(0).toInt, US_ASCII)

  private def pathOf(name: String): String = s"objects/$name"
}
