package org.metastore.spark.scan

import java.util.Locale

import org.metastore.spark.conf.MetastoreConf

/**
 * The ways in which UPDATE, DELETE and MERGE may find the data files of their target.
 *
 * @param byConditions whether by the conditions of the command
 * @param byKeys       whether also by the keys of a MERGE's source
 */
private[spark] final case class RowLevelPruning private (name: String, byConditions: Boolean, byKeys: Boolean)

private[spark] object RowLevelPruning {
  private val Property = MetastoreConf.PruningRowLevel.key.stripPrefix("spark.")

  // Each mode also allows everything that the modes before it allow.
  private val Modes = Seq(
    new RowLevelPruning("off", byConditions = false, byKeys = false),
    new RowLevelPruning("conditions", byConditions = true, byKeys = false),
    new RowLevelPruning("all", byConditions = true, byKeys = true))

  /** The session's mode, which a table's property can only restrict. An invalid property allows nothing. */
  def allowed(settings: MetastoreConf, properties: Map[String, String]): RowLevelPruning = {
    val sessionRank = rank(settings.pruningRowLevel)
    val tableRank =
      properties.get(Property).fold(sessionRank)(mode => rank(mode.trim.toLowerCase(Locale.ROOT)))
    Modes(math.max(0, math.min(sessionRank, tableRank)))
  }

  /** The mode of this name. */
  def named(name: String): Option[RowLevelPruning] = Modes.find(_.name == name)

  private def rank(name: String): Int = Modes.indexWhere(_.name == name)
}
