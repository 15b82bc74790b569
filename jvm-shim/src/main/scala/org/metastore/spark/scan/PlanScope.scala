package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, Subquery}

import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.tables.TableFormats

/** Judges plans whose scans must be left alone: writes, streams, rows or values that a policy hides. */
object PlanScope {

  /** The changes that are allowed to the scans of a plan. */
  sealed trait Scope
  case object Everything extends Scope

  /** No change; every scan shows the reason. */
  final case class NoChange(reason: Reason) extends Scope

  /** Estimates may be corrected, no file may be dropped. */
  final case class NumbersOnly(reason: Reason) extends Scope

  /** A write. */
  final case class Write(node: String, rowLevel: Boolean, ofFormat: Boolean) {

    /** The write with the least rank decides. */
    def rank: Int = if (ofFormat) 0 else if (rowLevel) 1 else 2
  }

  private val rowLevel = Set(
    "ReplaceData",
    "WriteDelta",
    "MergeRows",
    "UpdateTable",
    "DeleteFromTable",
    "DeleteFromTableWithFilters",
    "MergeIntoTable") ++ TableFormats.all.flatMap(_.rowLevelNodes)

  private val policies = Seq("RowFilter", "DataMasking", "ColumnMask")

  /** The first sign of a write in a plan; a row-level one if there is any. */
  def write(plan: LogicalPlan): Option[Write] = {
    val signs = plan.collect {
      case node if isWrite(node) => Write(node.nodeName, rowLevel(className(node)), isOfFormat(node))
    }
    signs.sortBy(_.rank).headOption
  }

  /** Whether Spark will make a join of a sub-query's plan, after it has looked in the plan for its value without rows. */
  def isCorrelated(plan: LogicalPlan): Boolean = plan match {
    case subquery: Subquery => subquery.correlated
    case _ => false
  }

  /** The scope of a plan; None for a stream, whose plan is not touched, not even to show a reason. */
  def judge(plan: LogicalPlan, query: Option[Write], insideWrites: Boolean): Option[Scope] =
    if (isStream(plan)) None
    else if (plan.exists(node => policies.exists(className(node).contains)))
      Some(NoChange(Reason(ReasonCode.RowPolicy)))
    else Some(ofWrite(plan, query, insideWrites))

  private def ofWrite(plan: LogicalPlan, query: Option[Write], insideWrites: Boolean): Scope = {
    val isSubquery = plan.isInstanceOf[Subquery]
    write(plan).orElse(if (isSubquery) query else None) match {
      // A sub-query of a row-level command may be the one that looks for the files to rewrite.
      case Some(Write(node, _, true)) => NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> node))
      case Some(Write(node, true, _)) if isSubquery =>
        NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> node))
      case Some(_) if !insideWrites => NumbersOnly(Reason(ReasonCode.InsideWrite))
      case _ => Everything
    }
  }

  private def isStream(plan: LogicalPlan): Boolean =
    plan.isStreaming || plan.exists(_.getClass.getName.contains(".streaming."))

  private def isWrite(node: LogicalPlan): Boolean =
    node.isInstanceOf[Command] || rowLevel(className(node)) || isOfFormat(node)

  private def isOfFormat(node: LogicalPlan): Boolean = TableFormats.all.exists(_.isCommand(node))

  private def className(node: LogicalPlan): String = node.getClass.getSimpleName
}
