package org.metastore.spark.sql

import org.apache.spark.metastore.ContextConf
import org.apache.spark.sql.SparkSessionExtensions

/**
 * Our parser around the parsers of all listed extensions. Some of these drop parameter markers: only a parser
 * around them can replace the markers before.
 */
final class OutermostParser extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, delegate) => MetastoreParser(delegate))
}

object OutermostParser {
  private val Extensions = "spark.sql.extensions"
  private val Last = Seq(classOf[OutermostParser].getName, "org.metastore.spark.MetastoreExtensions")

  /** Lists it last, if extensions are listed and ours is not the last already. */
  def list(): Unit =
    for {
      conf <- ContextConf.active
      listed <- conf.getOption(Extensions).map(_.trim)
      if listed.nonEmpty
    } if (!Last.exists(listed.endsWith)) conf.set(Extensions, s"$listed,${Last.head}")
}
