package org.metastore.spark.sql

import org.apache.spark.metastore.ContextConf
import org.apache.spark.sql.SparkSessionExtensions

/**
 * Our parser around those of all extensions that are listed: Delta's drops parameter markers, and only who comes before it
 * can save them.
 *
 * Where a session is built in the JVM, by a Connect or Thrift server or a shell, Spark applies what registers itself before
 * what is listed. So this is listed as the last.
 */
final class OutermostParser extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, delegate) => MetastoreParser(delegate))
}

object OutermostParser {
  private val Extensions = "spark.sql.extensions"
  private val Last = Seq(classOf[OutermostParser].getName, "org.metastore.spark.MetastoreExtensions")

  /** Lists it, where others are listed and we are not the last of them already. */
  def list(): Unit =
    for (conf <- ContextConf.active; listed <- conf.getOption(Extensions).map(_.trim) if listed.nonEmpty)
      if (!Last.exists(listed.endsWith)) conf.set(Extensions, s"$listed,${Last.head}")
}
