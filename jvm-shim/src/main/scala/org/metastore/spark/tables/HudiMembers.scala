package org.metastore.spark.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.FileIndex

/** Members of Hudi's classes and folders that several files need. */
private[tables] object HudiMembers {

  /** The instant that a query names. */
  def asOf(index: FileIndex): Option[String] =
    Reflection.option[String](Reflection.value[AnyRef](index, "specifiedQueryInstant"))

  /** The entries of a folder; none if there is no folder. */
  def list(folder: Path, session: SparkSession): Seq[Path] = {
    val system = folder.getFileSystem(session.sessionState.newHadoopConf())
    try system.listStatus(folder).toSeq.map(_.getPath)
    catch { case _: java.io.FileNotFoundException => Nil }
  }
}
