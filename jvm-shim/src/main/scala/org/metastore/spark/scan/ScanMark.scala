package org.metastore.spark.scan

import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.pruning.WantedRows
import org.metastore.spark.reason.{Optional, Reason, ReasonCode}

/** The decision whether files of a relation may be dropped, as an option of the relation: it survives every rewrite and thread. */
private[scan] sealed trait ScanMark {

  /** The option; equal decisions are equal texts, so that equal scans stay equal. */
  def asOption: (String, String)
}

private[scan] object ScanMark {
  private val Key = "metastore.scan"

  /**
   * A permit to drop files of the table at `root` by the statistics of this fingerprint; Spark narrows the paths that it reads.
   *
   * @param wanted  the rows that are enough; None: all are wanted
   * @param command how a row-level command may find its files, where the scan is the one that finds them; None of queries
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

  /** The reason to leave the scan alone. */
  final case class Refusal(code: ReasonCode, why: String) extends ScanMark {
    override def asOption: (String, String) = Key -> s"no:${code.name}:$why"
  }

  def refuse(reason: Reason): ScanMark = Refusal(reason.code, reason.sentence)

  /** The mark of a relation. */
  def fromRelation(relation: HadoopFsRelation): Option[ScanMark] =
    relation.options.get(Key).map(parse)

  /** The permit to drop files of a relation, or None. */
  def permit(relation: HadoopFsRelation): Option[Permit] =
    fromRelation(relation).collect { case permit: Permit => permit }

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
