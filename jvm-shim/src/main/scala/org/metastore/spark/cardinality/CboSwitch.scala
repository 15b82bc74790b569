package org.metastore.spark.cardinality

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.metastore.ContextConf

import org.metastore.spark.MetastoreConf

/**
 * Switches cost-based optimization on where the user has decided nothing: without it Spark uses none of our numbers but sizes.
 *
 * It is set once, on the SparkContext's conf and before the first session exists, so that it is visible everywhere, survives
 * RESET and newSession, and loses against whatever the user sets in a session.
 *
 * Iceberg's distinct counts without bounds, of which Spark makes estimates of zero rows, come with cost-based optimization:
 * who gets the one from us is spared the other, also where we keep out of a query later.
 */
object CboSwitch extends Logging {
  private val Cbo = "spark.sql.cbo.enabled"
  private val JoinReorder = "spark.sql.cbo.joinReorder.enabled"

  private val IcebergCounts = "spark.sql.iceberg.report-column-stats"

  /** Sets all, unless optimization is decided already or the Metastore is told to keep out. Never throws. */
  def apply(): Unit =
    try ContextConf.active.filter(wanted).foreach { conf =>
      conf.set(Cbo, "true").set(JoinReorder, "true").setIfMissing(IcebergCounts, "false")
      logInfo(s"$Cbo and $JoinReorder are switched on; set one of them, or ${MetastoreConf.CboEnabled.key}=false, to decide")
    } catch {
      case NonFatal(e) => logWarning(s"$Cbo stays as it is", e)
    }

  private def wanted(conf: SparkConf): Boolean =
    !conf.contains(Cbo) && !conf.contains(JoinReorder) &&
      Seq(MetastoreConf.Enabled, MetastoreConf.CboEnabled).forall { setting =>
        conf.getOption(setting.key).orElse(sys.env.get(setting.environment)).flatMap(setting.parse)
          .getOrElse(setting.default.toBoolean)
      }
}
