package org.metastore.spark.analyze

import java.time.{Duration, Instant}
import java.util.{Map => JavaMap}

import scala.collection.JavaConverters._

import org.apache.hadoop.fs.{FileSystem, FilterFileSystem, Path}

import org.apache.spark.sql.SparkSession

import org.metastore.spark.tables.Reflection.{call, has, option, value}

/**
 * Gets the keys that Hadoop's S3A uses now: only S3A knows those of an assumed role or of a custom class.
 * Python calls it over py4j: SQL would show the keys to people.
 */
object HadoopKeys {

  /**
   * The keys for a location, as Iceberg's S3FileIO calls them.
   *
   * @param settings of a table, beside those of the session
   */
  def find(
      session: SparkSession,
      location: String,
      settings: JavaMap[String, String]): JavaMap[String, String] = {
    val path = new Path(location)
    val conf = session.sessionState.newHadoopConf()
    if (settings.isEmpty) keysOf(path.getFileSystem(conf)).asJava
    else {
      for ((name, value) <- settings.asScala) conf.set(name, value)
      // The file system that Hadoop caches for a bucket may have the keys of another table.
      val system = FileSystem.newInstance(path.toUri, conf)
      try keysOf(system).asJava
      finally system.close()
    }
  }

  private def keysOf(system: FileSystem): Map[String, String] = system match {
    case outer: FilterFileSystem => keysOf(outer.getRawFileSystem)
    case s3a =>
      val providers = call[AutoCloseable](s3a, "shareCredentials", "statistics")
      try propertiesOf(value[AnyRef](providers, "resolveCredentials", "getCredentials"))
      finally providers.close()
  }

  /** Keys as properties: methods have other names in the AWS SDK of Hadoop 3.3. */
  private def propertiesOf(keys: AnyRef): Map[String, String] = {
    val key = value[String](keys, "accessKeyId", "getAWSAccessKeyId")
    if (key == null) Map("s3.anonymous" -> "true")
    else {
      val secret = value[String](keys, "secretAccessKey", "getAWSSecretKey")
      Map("s3.access-key-id" -> key, "s3.secret-access-key" -> secret) ++ tokenOf(keys)
    }
  }

  private def tokenOf(keys: AnyRef): Map[String, String] =
    if (!TokenMethods.exists(has(keys, _))) Map.empty
    else {
      val end = endOf(keys).getOrElse(Instant.now().plus(ShortestSession))
      Map(
        "s3.session-token" -> value[String](keys, TokenMethods: _*),
        "s3.session-token-expires-at-ms" -> end.toEpochMilli.toString)
    }

  private def endOf(keys: AnyRef): Option[Instant] =
    if (has(keys, "expirationTime")) option[Instant](call[AnyRef](keys, "expirationTime"))
    else None

  private val TokenMethods = Seq("sessionToken", "getSessionToken")

  /** AWS gives no role for less. */
  private val ShortestSession = Duration.ofMinutes(15)
}
