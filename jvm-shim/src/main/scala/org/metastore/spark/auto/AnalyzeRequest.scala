package org.metastore.spark.auto

import org.apache.spark.sql.SparkSession

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.Optional

/** A table that is to be analyzed after a write, and whether the statement waits for that. */
private[auto] final case class AnalyzeRequest(table: String, waits: Boolean)

private[auto] object AnalyzeRequest {
  private val (off, background, waiting) = ("off", "background", "wait")
  private val Property = "metastore.analyze.auto"

  /** The request after a write, by the settings of session and table; None if neither asks for ANALYZE. */
  def fromWrite(session: SparkSession, written: => Option[WrittenTable]): Option[AnalyzeRequest] = {
    val conf = MetastoreConf.fromSession(session)
    if (conf.enabled) written.flatMap(fromTable(conf, _)) else None
  }

  private def fromTable(conf: MetastoreConf, table: WrittenTable): Option[AnalyzeRequest] = {
    MetastoreConf.warnOfMisspeltProperties(table.name, table.properties)
    val mode = modeOf(conf.analyzeAuto, table.properties.get(Property))
    val isAnalyzed = mode != off && conf.analyzeFormats.contains(table.format)
    Optional.when(isAnalyzed)(AnalyzeRequest(table.name, mode == waiting))
  }

  /** The mode of the session, unless the table switches ANALYZE on or off. */
  private def modeOf(sessionMode: String, property: Option[String]): String =
    if (isWritten(property, "false")) off
    else if (sessionMode == off && isWritten(property, "true")) background
    else sessionMode

  private def isWritten(property: Option[String], value: String): Boolean =
    property.exists(_.trim.equalsIgnoreCase(value))
}
