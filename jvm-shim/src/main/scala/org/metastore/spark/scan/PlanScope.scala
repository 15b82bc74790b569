package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, Subquery, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.tables.TableFormats

/** Judges plans whose scans must be left alone: writes, streams, rows or values that a policy hides. */
object PlanScope {

  /** The changes that are allowed to the scans of a plan. */
  sealed trait Scope
  case object Everything extends Scope

  /** The scans find the data files, or the rows, that a row-level command changes. */
  final case class OfCommand(pruning: RowLevelPruning) extends Scope

  /** No change; every scan shows the reason. */
  final case class NoChange(reason: Reason) extends Scope

  /** Estimates may be corrected, no file may be dropped. */
  final case class NumbersOnly(reason: Reason) extends Scope

  /**
   * A write.
   *
   * @param target the table whose rows a row-level command changes, where Spark plans the command
   */
  final case class Write(node: String, rowLevel: Boolean, ofFormat: Boolean, target: Option[Table]) {

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
      case node if isWrite(node) =>
        Write(node.nodeName, rowLevel(className(node)), isOfFormat(node), targetOf(node))
    }
    signs.sortBy(_.rank).headOption
  }

  /** Whether Spark will make a join of a sub-query's plan, after it has looked in the plan for its value without rows. */
  def isCorrelated(plan: LogicalPlan): Boolean =
    plan match {
      case subquery: Subquery => subquery.correlated
      case _ => false
    }

  /**
   * The scope of a plan; None for a stream, whose plan is not touched, not even to show a reason.
   *
   * @param findsFiles whether the plan finds the data files of this target that a row-level command changes; None: of any table
   */
  def judge(plan: LogicalPlan, query: Option[Write], settings: MetastoreConf)(
      findsFiles: Option[Table] => Boolean): Option[Scope] =
    if (isStream(plan)) None
    else if (plan.exists(node => policies.exists(className(node).contains)))
      Some(NoChange(Reason(ReasonCode.RowPolicy)))
    else Some(ofWrite(plan, query, settings)(findsFiles))

  private def ofWrite(plan: LogicalPlan, query: Option[Write], settings: MetastoreConf)(
      findsFiles: Option[Table] => Boolean): Scope = {
    val isSubquery = plan.isInstanceOf[Subquery]
    write(plan).orElse(if (isSubquery) query else None) match {
      case Some(Write(node, _, true, _)) => NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> node))
      case Some(command @ Write(_, true, _, _)) if isSubquery =>
        ofSubquery(command, settings, command.target.filter(target => findsFiles(Some(target))))
      // A rule may have planned another query in between: the command is not known any more.
      case None if isSubquery && findsFiles(None) =>
        NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> "a command"))
      case Some(_) if !settings.pruneInsideWrites => NumbersOnly(Reason(ReasonCode.InsideWrite))
      case _ => Everything
    }
  }

  // Of the sub-queries of a row-level command one is known: Spark has added it to find the files to rewrite.
  private def ofSubquery(command: Write, settings: MetastoreConf, searched: Option[Table]): Scope =
    searched.map(rowLevelPruning(_, settings)) match {
      case Some(pruning) if pruning.byConditions => OfCommand(pruning)
      case _ => NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> command.node))
    }

  /** How a command that changes rows of a table may find its files. */
  def rowLevelPruning(target: Table, settings: MetastoreConf): RowLevelPruning =
    RowLevelPruning.allowed(settings, TableFormats.open(target).fold(Map.empty[String, String])(_.properties))

  private def targetOf(node: LogicalPlan): Option[Table] = node match {
    case command: V2WriteCommand => RowLevelTarget.fromCommand(command)
    case _ => None
  }

  private def isStream(plan: LogicalPlan): Boolean =
    plan.isStreaming || plan.exists(_.getClass.getName.contains(".streaming."))

  private def isWrite(node: LogicalPlan): Boolean =
    node.isInstanceOf[Command] || rowLevel(className(node)) || isOfFormat(node)

  private def isOfFormat(node: LogicalPlan): Boolean = TableFormats.all.exists(_.isCommand(node))

  private def className(node: LogicalPlan): String = node.getClass.getSimpleName
}
