package org.metastore.spark.analyze

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.US_ASCII

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.sql.{Dataset, Row}
import org.apache.spark.util.SerializableConfiguration

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
  def write(records: JavaRDD[Array[Byte]]): JavaRDD[Array[Byte]] = {
    val (to, settings) = (uri, shared(records.context))
    records.rdd.mapPartitions { some =>
      val folder = new HadoopFolder(to, settings.value.value)
      some.filter { record =>
        val name = nameOf(record)
        if (name.nonEmpty) folder.put(pathOf(name), record.drop(name.length + 1))
        name.isEmpty
      }
    }.toJavaRDD()
  }

  /** The same for a column of records. */
  def write(rows: Dataset[Row]): JavaRDD[Array[Byte]] =
    write(rows.rdd.map(_.getAs[Array[Byte]](0)).toJavaRDD())

  /**
   * Adds to every record the bytes of the object that it names, none where it is missing, after the length of the record
   * in four bytes.
   */
  def read(records: JavaRDD[Array[Byte]]): JavaRDD[Array[Byte]] = {
    val (from, settings) = (uri, shared(records.context))
    records.rdd.mapPartitions { some =>
      val folder = new HadoopFolder(from, settings.value.value)
      some.map { record =>
        val name = nameOf(record)
        val found = if (name.isEmpty) null else folder.part(pathOf(name), 0, Int.MaxValue)
        val length = ByteBuffer.allocate(Integer.BYTES).putInt(record.length).array
        length ++ record ++ Option(found).getOrElse(Array.emptyByteArray)
      }
    }.toJavaRDD()
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
