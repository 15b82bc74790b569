package org.metastore.spark.scan

import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.pruning.WantedRows
import org.metastore.spark.reason.{Optional, Reason, ReasonCode}

/**
 * The decision whether files of a relation may be dropped. It is an option of the relation, so that it
 * survives every rewrite of the plan and every change of threads.
 */
private[scan] sealed trait ScanMark {

  /** The option; equal decisions have equal texts, so that equal scans stay equal. */
  def asOption: (String, String)
}

private[scan] object ScanMark {
  private val Key = "metastore.scan"

  /**
   * A permit to drop files by the statistics of this fingerprint.
   *
   * @param root    the table's root; Spark may later reduce the relation's paths to those of partitions
   * @param wanted  the rows that the query needs; None: all rows
   * @param command the ways of a row-level command to find its files by this scan; None for queries
   */
  final case class Permit(
      fingerprint: String,
      root: String,
      wanted: Option[WantedRows],
      command: Option[RowLevelPruning] = None)
    extends ScanMark {
    override def asOption: (String, String) =
      Key -> s"ok:$fingerprint:${wanted.fold("")(_.text)}:${command.fold("")(_.name)}:$root"

    /** Whether the keys of joins may choose files. */
    def takesKeys: Boolean = wanted.isEmpty && command.forall(_.byKeys)
  }

  /** The reason not to prune the scan. */
  final case class Refusal(code: ReasonCode, sentence: String) extends ScanMark {
    override def asOption: (String, String) = Key -> s"no:${code.name}:$sentence"
  }

  def refuse(reason: Reason): ScanMark = Refusal(reason.code, reason.sentence)

  /** The mark of a relation. */
  def fromRelation(relation: HadoopFsRelation): Option[ScanMark] =
    relation.options.get(Key).map(parse)

  /** The permit to drop files of a relation, or None. */
  def permit(relation: HadoopFsRelation): Option[Permit] = fromRelation(relation) match {
    case Some(permit: Permit) => Some(permit)
    case _ => None
  }

  private def parse(text: String): ScanMark = text.split(":", 5) match {
    case Array("ok", fingerprint, wanted, command, root) =>
      Permit(
        fingerprint,
        root,
        Optional.when(wanted.nonEmpty)(WantedRows.parse(wanted)),
        RowLevelPruning.named(command))
    case Array("no", code, _*) =>
      Refusal(
        ReasonCode.all.find(_.name == code).getOrElse(ReasonCode.Failed),
        text.split(":", 3).drop(2).mkString)
    case _ => Refusal(ReasonCode.Failed, text)
  }
}
