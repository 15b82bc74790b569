package org.metastore.spark.analyze

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.US_ASCII

import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.sql.{Dataset, Row}

import org.metastore.spark.tables.{FolderAccess, WritableFolder}

/**
 * Carries objects between Python tasks and a store that only the JVM reaches: Python has the bytes, the
 * executor's JVM the access. A record is the length of a name in one byte, the name of an object or nothing,
 * and bytes.
 *
 * @param access opens the folder of the store
 */
final class CarriedObjects(access: FolderAccess) {
  import CarriedObjects._

  /** Writes the records with a name, and returns the records without one. */
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

  /**
   * Adds to each record its length in four bytes, and the bytes of the object that it names, if it names one.
   */
  def read(records: JavaRDD[Array[Byte]]): JavaRDD[Array[Byte]] = inTasks(records) { (folder, part) =>
    part.map { record =>
      val name = nameOf(record)
      val bytes = if (name.isEmpty) null else folder.part(pathOf(name), 0, Int.MaxValue)
      val length = ByteBuffer.allocate(Integer.BYTES).putInt(record.length).array
      length ++ record ++ Option(bytes).getOrElse(Array.emptyByteArray)
    }
  }

  private def inTasks(records: JavaRDD[Array[Byte]])(
      use: (WritableFolder, Iterator[Array[Byte]]) => Iterator[Array[Byte]]): JavaRDD[Array[Byte]] = {
    val inTask = shared(records.context) // tasks get the access, not this object
    records.rdd.mapPartitions(part => use(inTask.value.open(), part)).toJavaRDD()
  }

  /** The access, for tasks, whose executors get this jar too. */
  private def shared(context: SparkContext) = {
    val jar = getClass.getProtectionDomain.getCodeSource.getLocation.getPath
    if (!context.isLocal && !context.listJars().exists(_.endsWith(jar.split('/').last))) context.addJar(jar)
    context.broadcast(access)
  }
}

private object CarriedObjects {
  private def nameOf(record: Array[Byte]): String = new String(record, 1, record(0).toInt, US_ASCII)

  private def pathOf(name: String): String = s"objects/$name"
}
