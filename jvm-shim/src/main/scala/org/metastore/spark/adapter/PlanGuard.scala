package org.metastore.spark.adapter

import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, Subquery}

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Tells which plans are none of our business: writes, streams, rows or values hidden by a policy. */
object PlanScope {

  /** What may be done to the scans of a plan. */
  sealed trait Scope
  case object Everything extends Scope
  /** Nothing; every scan says why. */
  final case class NoChange(reason: Reason) extends Scope
  /** Estimates may be corrected, no file may be dropped. */
  final case class NumbersOnly(reason: Reason) extends Scope

  /**
   * A write.
   *
   * @param rowLevel whether it changes rows of a table that it reads itself (UPDATE, DELETE, MERGE)
   * @param ofHudi   whether it is a command of Hudi, which reads its target by ordinary scans
   */
  final case class Write(node: String, rowLevel: Boolean, ofHudi: Boolean)

  private val HudiCommands = "org.apache.spark.sql.hudi.command."

  private val rowLevel = Set(
    "ReplaceData", "WriteDelta", "MergeRows", "UpdateTable", "DeleteFromTable", "DeleteFromTableWithFilters",
    "MergeIntoTable", "ReplaceIcebergData", "MergeIntoIcebergTable", "UpdateIcebergTable", "DeleteFromIcebergTable")

  private val policies = Seq("RowFilter", "DataMasking", "ColumnMask")

  /** The first sign of a write in a plan; a row-level one if there is any. */
  def write(plan: LogicalPlan): Option[Write] = {
    val signs = plan.collect { case node if isWrite(node) => Write(node.nodeName, rowLevel(className(node)), isOfHudi(node)) }
    signs.find(_.ofHudi).orElse(signs.find(_.rowLevel)).orElse(signs.headOption)
  }

  /**
   * Judges a plan at the optimizer's door: nothing of a stream's plan is touched, not even to say so.
   *
   * @param query        the write that the whole query is: sub-queries are optimized on their own and do not show it
   * @param insideWrites `spark.metastore.pruneInsideWrites`
   */
  def judge(plan: LogicalPlan, query: Option[Write], insideWrites: Boolean): Option[Scope] =
    if (isStream(plan)) None
    else if (plan.exists(node => policies.exists(className(node).contains))) Some(NoChange(Reason(ReasonCode.RowPolicy)))
    else Some(ofWrite(plan, query, insideWrites))

  private def ofWrite(plan: LogicalPlan, query: Option[Write], insideWrites: Boolean): Scope = {
    val isSubquery = plan.isInstanceOf[Subquery]
    write(plan).orElse(if (isSubquery) query else None) match {
      // A sub-query of a row-level command may be the one that looks for the files to rewrite.
      case Some(Write(node, _, true)) => NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> node))
      case Some(Write(node, true, _)) if isSubquery => NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> node))
      case Some(_) if !insideWrites => NumbersOnly(Reason(ReasonCode.InsideWrite))
      case _ => Everything
    }
  }

  private def isStream(plan: LogicalPlan): Boolean =
    plan.isStreaming || plan.exists(_.getClass.getName.contains(".streaming."))

  private def isWrite(node: LogicalPlan): Boolean = node.isInstanceOf[Command] || rowLevel(className(node)) || isOfHudi(node)

  private def isOfHudi(node: LogicalPlan): Boolean = node.getClass.getName.startsWith(HudiCommands)

  private def className(node: LogicalPlan): String = node.getClass.getSimpleName
}
