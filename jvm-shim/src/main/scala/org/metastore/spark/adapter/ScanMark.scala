package org.metastore.spark.adapter

import org.apache.spark.sql.execution.datasources.HadoopFsRelation

import org.metastore.spark.explain.{Reason, ReasonCode}

/**
 * The decision on a file relation, as an option of the relation: it survives every later rewrite and every thread. Without
 * a mark a scan is left alone, so that no unknown way into physical planning drops a file.
 */
private[adapter] sealed trait ScanMark {
  /** The option; equal decisions are equal texts, so that equal scans stay equal. */
  def asOption: (String, String)
}

private[adapter] object ScanMark {
  private val Key = "metastore.scan"

  /** Files of the table at `root` may be dropped by the statistics of this fingerprint; Spark narrows the paths it reads. */
  final case class Permit(fingerprint: String, root: String) extends ScanMark {
    override def asOption: (String, String) = Key -> s"ok:$fingerprint:$root"
  }

  /** The scan is left alone. */
  final case class Refusal(code: ReasonCode, why: String) extends ScanMark {
    override def asOption: (String, String) = Key -> s"no:${code.name}:$why"
  }

  def refuse(reason: Reason): ScanMark = Refusal(reason.code, reason.sentence)

  /** The mark of a relation. */
  def of(relation: HadoopFsRelation): Option[ScanMark] = relation.options.get(Key).map(_.split(":", 3)).map {
    case Array("ok", fingerprint, root) => Permit(fingerprint, root)
    case Array("no", code, why) => Refusal(ReasonCode.all.find(_.name == code).getOrElse(ReasonCode.Failed), why)
    case other => Refusal(ReasonCode.Failed, other.mkString(":"))
  }
}
