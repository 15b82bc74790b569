package org.metastore.spark.scan

import java.util.Locale

import org.metastore.spark.conf.MetastoreConf

/**
 * How UPDATE, DELETE and MERGE may find the data files of their target.
 *
 * @param byConditions by the conditions of the command
 * @param byKeys       by the keys of a MERGE's source, too
 */
private[spark] final case class RowLevelPruning private (name: String, byConditions: Boolean, byKeys: Boolean)

private[spark] object RowLevelPruning {
  private val property = MetastoreConf.PruningRowLevel.key.stripPrefix("spark.")

  // Each allows what those before it allow.
  private val modes = Seq(
    new RowLevelPruning("off", byConditions = false, byKeys = false),
    new RowLevelPruning("conditions", byConditions = true, byKeys = false),
    new RowLevelPruning("all", byConditions = true, byKeys = true))

  /** The setting of the session, which a table's property can only restrict. A property that is no mode allows nothing. */
  def allowed(settings: MetastoreConf, properties: Map[String, String]): RowLevelPruning = {
    val ofSession = place(settings.pruningRowLevel)
    val ofTable = properties.get(property).fold(ofSession)(text => place(text.trim.toLowerCase(Locale.ROOT)))
    modes(math.max(0, math.min(ofSession, ofTable)))
  }

  /** The mode of a name that a scan is marked with. */
  def named(name: String): Option[RowLevelPruning] = modes.find(_.name == name)

  private def place(name: String): Int = modes.indexWhere(_.name == name)
}
