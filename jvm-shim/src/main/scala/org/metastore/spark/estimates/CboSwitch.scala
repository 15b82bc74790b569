package org.metastore.spark.estimates

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.metastore.ContextConf

import org.metastore.spark.conf.{MetastoreConf, Setting}
import org.metastore.spark.reason.Attempt
import org.metastore.spark.tables.TableFormats

/** Switches cost-based optimization on, unless the user has set it. Without it, Spark uses only the sizes. */
object CboSwitch extends Logging {
  private val Cbo = "spark.sql.cbo.enabled"
  private val JoinReorder = "spark.sql.cbo.joinReorder.enabled"

  /** Sets the settings, unless the user has set one of them or has disabled the Metastore. Never throws. */
  def apply(): Unit =
    Attempt.recover(ContextConf.active.filter(isUndecided).foreach(switchOn)) { failure =>
      logWarning(s"$Cbo stays as it is", failure)
    }

  private def switchOn(conf: SparkConf): Unit = {
    conf.set(Cbo, "true").set(JoinReorder, "true")
    for {
      format <- TableFormats.all
      (key, value) <- format.optimizerDefaults
    } conf.setIfMissing(key, value)
    val switch = MetastoreConf.CboEnabled.key
    logInfo(s"$Cbo and $JoinReorder are switched on; set one of them, or $switch=false, to decide")
  }

  private def isUndecided(conf: SparkConf): Boolean =
    if (conf.contains(Cbo) || conf.contains(JoinReorder)) false
    else isOn(MetastoreConf.Enabled, conf) && isOn(MetastoreConf.CboEnabled, conf)

  private def isOn(setting: Setting[Boolean], conf: SparkConf): Boolean = {
    val text = conf.getOption(setting.key).orElse(sys.env.get(setting.environment))
    text.flatMap(setting.parse).getOrElse(setting.default.toBoolean)
  }
}
