package org.metastore.spark.tables

import java.nio.ByteBuffer
import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.commons.codec.digest.DigestUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, PartitionDirectory}

import org.metastore.spark.reason.Optional

/**
 * The log files of a relation's file slices. They change the rows of the slice's base file.
 *
 * The same log files give the same rows if Hudi merges them by one of its own modes and each of them is
 * committed. Then the rows of a slice have a version: statistics of these rows stay right as long as the
 * slice has the same log files.
 */
private[spark] final class HudiLogFiles(relation: HadoopFsRelation) {
  import HudiLogFiles._
  import Reflection.{call, value}

  private lazy val metaClient = call[AnyRef](relation.location, "metaClient")
  private lazy val config = call[AnyRef](metaClient, "getTableConfig")

  private lazy val mergeProperties: Map[String, String] = {
    val properties = call[java.util.Map[String, String]](config, "propsMap").asScala.toMap
    properties.filter { case (name, _) => changesMerging(name) }
  }

  private lazy val hasStableMerge: Boolean = {
    val version = call[Int](call[AnyRef](config, "getTableVersion"), "versionCode")
    val mode = Option(call[AnyRef](config, "getRecordMergeMode"))
    version >= OldestVersion && mode.exists(mergeMode => BuiltInModes(mergeMode.toString)) &&
    value[Boolean](relation.location, "includeLogFiles") &&
    !HudiColumns.readOrByName(relation).areById &&
    relation.options.forall { case (name, text) => !changesMerging(name) || isTableDefault(name, text) }
  }

  private def isTableDefault(option: String, value: String): Boolean =
    if (option.endsWith(MergeType)) value == DefaultMergeType
    else mergeProperties.get(option.stripPrefix("spark.")).contains(value)

  private lazy val completed: AnyRef =
    call[AnyRef](call[AnyRef](metaClient, "getActiveTimeline"), "filterCompletedInstants")

  // A refresh of the relation lists later log files, but the reader keeps the instant that it was made for.
  private lazy val readInstant = value[String](relation.fileFormat, "queryTimestamp")

  /**
   * The version of the rows of a slice with log files; None if the same log files may give other rows, or if
   * this release of Hudi does not say so.
   */
  def version(slice: AnyRef): Option[Long] = Try {
    val files = logFiles(slice)
    Optional.when(files.nonEmpty && hasStableMerge && files.forall(isCommitted))(digest(files))
  }.getOrElse(None)

  // A reader leaves out the records of a write that is not committed, or that is later than its own instant.
  private def isCommitted(logFile: AnyRef): Boolean = {
    val instant = call[String](logFile, "getDeltaCommitTime")
    instant <= readInstant && call[Boolean](completed, "containsOrBeforeTimelineStarts", instant)
  }

  private lazy val mergeLines: String = {
    val lines = mergeProperties.map { case (name, text) => s"$name=$text\n" }
    lines.toSeq.sorted.mkString
  }

  private def digest(files: Seq[AnyRef]): Long = {
    val lines = files.map(file => s"${name(file)} ${call[Long](file, "getFileSize")}\n")
    val bytes = DigestUtils.sha256(mergeLines + lines.sorted.mkString)
    ByteBuffer.wrap(bytes).getLong & Long.MaxValue // a negative number is no version
  }

  /** Lists the slices whose rows have these versions, by the location of their base file. */
  def listFiles(versions: Map[Path, Long]): Seq[PartitionDirectory] = {
    // Without filters Hudi skips nothing: its own skipping loses rows in 1.2.0.
    val selected = for (partition <- relation.location.listFiles(Nil, Nil)) yield {
      def isSelected(file: Path): Boolean =
        versions.get(file).exists(sliceOf(partition.values, file).flatMap(version).contains(_))
      partition.copy(files = partition.files.filter(file => isSelected(file.getPath)))
    }
    selected.filter(_.files.nonEmpty)
  }
}

private[spark] object HudiLogFiles {

  /** Since this version of tables, each write makes log files of its own and appends to none. */
  private val OldestVersion = 8

  /** The modes in which Hudi itself chooses between two records of a key. */
  private val BuiltInModes = Set("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
  private val MergeType = "hoodie.datasource.merge.type"
  private val DefaultMergeType = "payload_combine"
  private val MergeWords = Seq("merge", "payload", "ordering", "precombine", "partial")

  /** Whether an option of a read or a table property may change which rows are read. */
  private def changesMerging(name: String): Boolean = {
    val lowerCase = name.toLowerCase(Locale.ROOT).stripPrefix("spark.")
    lowerCase.startsWith("hoodie.") && MergeWords.exists(lowerCase.contains(_))
  }

  private val PlainRows = "org.apache.spark.sql.catalyst.expressions."
  private val FileNames = "org.apache.hudi.common.fs.FSUtils"

  /** The slice of a file that Hudi's index lists, if it has log files, or rows in a bootstrapped file. */
  def sliceOf(partitionValues: InternalRow, listed: Path): Option[AnyRef] =
    if (partitionValues.getClass.getName.startsWith(PlainRows)) None
    else {
      val fileNames = Reflection.load(FileNames, partitionValues.getClass.getClassLoader)
      val fileId = Reflection.callStatic[String](fileNames, "getFileId", listed.getName)
      Reflection.option[AnyRef](Reflection.call[AnyRef](partitionValues, "getSlice", fileId))
    }

  /** The log files of a slice. */
  def logFiles(slice: AnyRef): Seq[AnyRef] =
    Reflection.call[java.util.stream.Stream[AnyRef]](slice, "getLogFiles").iterator.asScala.toList

  /** The name of a log file. */
  def name(logFile: AnyRef): String = Reflection.call[String](logFile, "getFileName")
}
