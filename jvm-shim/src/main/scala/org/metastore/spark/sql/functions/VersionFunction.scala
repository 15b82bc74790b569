package org.metastore.spark.sql.functions

import java.util.Properties

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import org.metastore.spark.sql.{ResultRow, Argument, Arguments, TableFunction}

/** `metastore.version()`: one row. */
object VersionFunction extends TableFunction {
  private val StatisticsFormat = 1

  override val name = "version"
  override val arguments: Seq[Argument] = Nil
  override val schema: StructType = StructType.fromDDL("version STRING, spark STRING, scala STRING, format INT, jar STRING")
  override val meaning = "Versions of the shim, of Spark and Scala, of the statistics' format, and the jar that was loaded"
  override val needsSettings = false

  override def rows(session: SparkSession, call: Arguments): Seq[InternalRow] = {
    val jar = Option(getClass.getProtectionDomain.getCodeSource).map(_.getLocation.getPath)
    Seq(ResultRow.row(build.getProperty("version"), session.version, scala.util.Properties.versionNumberString, StatisticsFormat, jar))
  }

  private lazy val build: Properties = {
    val properties = new Properties
    Option(getClass.getResourceAsStream("/metastore-shim.properties")).foreach { stream =>
      try properties.load(stream) finally stream.close()
    }
    properties
  }
}
