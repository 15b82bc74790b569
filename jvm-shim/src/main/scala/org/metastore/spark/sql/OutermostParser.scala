package org.metastore.spark.sql

import org.apache.spark.metastore.ContextConf
import org.apache.spark.sql.SparkSessionExtensions

/**
 * Our parser around those of all extensions that are listed: Delta's drops parameter markers, and only who comes before it can
 * save them.
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
    for {
      conf <- ContextConf.active
      listed <- conf.getOption(Extensions).map(_.trim)
      if listed.nonEmpty
    } if (!Last.exists(listed.endsWith)) conf.set(Extensions, s"$listed,${Last.head}")
}
