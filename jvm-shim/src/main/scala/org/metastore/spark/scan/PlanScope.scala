package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, Subquery, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.metastore.RowLevelTarget

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.tables.TableFormats

/** Finds plans whose scans must not change: writes, streams, and tables with a row or column policy. */
object PlanScope {

  /** The changes that are allowed to the scans of a plan. */
  sealed trait Scope
  case object Everything extends Scope

  /** The scans find the data files, or the rows, that a row-level command changes. */
  final case class RowSearch(pruning: RowLevelPruning) extends Scope

  /** No change is allowed; every scan shows the reason. */
  final case class NoChange(reason: Reason) extends Scope

  /** Estimates may be corrected; no file may be dropped. */
  final case class NumbersOnly(reason: Reason) extends Scope

  /**
   * A command that writes to a table.
   *
   * @param isFormatCommand whether the table format plans the command
   * @param target          the table whose rows a row-level command changes, if Spark plans the command
   */
  final case class Write(
      node: String,
      isRowLevel: Boolean,
      isFormatCommand: Boolean,
      target: Option[Table]) {

    /** The write with the least rank decides. */
    def rank: Int = if (isFormatCommand) 0 else if (isRowLevel) 1 else 2
  }

  private val rowLevelNodes = Set(
    "ReplaceData",
    "WriteDelta",
    "MergeRows",
    "UpdateTable",
    "DeleteFromTable",
    "DeleteFromTableWithFilters",
    "MergeIntoTable") ++ TableFormats.all.flatMap(_.rowLevelNodes)

  private val policies = Seq("RowFilter", "DataMasking", "ColumnMask")

  /** The write in a plan; a row-level one if there is any. */
  def write(plan: LogicalPlan): Option[Write] = {
    val writes = plan.collect {
      case node if isWrite(node) =>
        Write(node.nodeName, rowLevelNodes(className(node)), isFormatCommand(node), targetOf(node))
    }
    writes.sortBy(_.rank).headOption
  }

  /**
   * Whether Spark will make a join of a sub-query's plan; first it evaluates the plan's value for no rows.
   */
  def isCorrelated(plan: LogicalPlan): Boolean =
    plan match {
      case subquery: Subquery => subquery.correlated
      case _ => false
    }

  /**
   * The scope of a plan, or None for a stream: its plan does not even show a reason.
   *
   * @param outerWrite         the write of the query around a sub-query
   * @param findsFiles         whether the plan finds the data files that a row-level command changes
   * @param findsFilesOfTarget whether it finds those of this target
   */
  def judge(plan: LogicalPlan, outerWrite: Option[Write], settings: MetastoreConf)(
      findsFiles: => Boolean,
      findsFilesOfTarget: Table => Boolean): Option[Scope] =
    if (isStream(plan)) None
    else if (plan.exists(node => policies.exists(className(node).contains)))
      Some(NoChange(Reason(ReasonCode.RowPolicy)))
    else Some(judgeWrite(plan, outerWrite, settings)(findsFiles, findsFilesOfTarget))

  private def judgeWrite(plan: LogicalPlan, outerWrite: Option[Write], settings: MetastoreConf)(
      findsFiles: => Boolean,
      findsFilesOfTarget: Table => Boolean): Scope = {
    val isSubquery = plan.isInstanceOf[Subquery]
    write(plan).orElse(if (isSubquery) outerWrite else None) match {
      case Some(command) if command.isFormatCommand => numbersOnly(command.node)
      case Some(command) if command.isRowLevel && isSubquery =>
        judgeSubquery(command, command.target.filter(findsFilesOfTarget), settings)
      // A rule may have planned another query in between. Then the command is unknown.
      case None if isSubquery && findsFiles => numbersOnly("a command")
      case Some(_) if !settings.pruneInsideWrites => NumbersOnly(Reason(ReasonCode.InsideWrite))
      case _ => Everything
    }
  }

  // Only one sub-query of a row-level command may skip files: Spark adds it to find the files to rewrite.
  private def judgeSubquery(command: Write, searchedTarget: Option[Table], settings: MetastoreConf): Scope =
    searchedTarget.map(rowLevelPruning(_, settings)) match {
      case Some(pruning) if pruning.byConditions => RowSearch(pruning)
      case _ => numbersOnly(command.node)
    }

  private def numbersOnly(command: String): Scope =
    NumbersOnly(Reason(ReasonCode.RowLevelCommand, "command" -> command))

  /** The ways in which a command that changes rows of a table may find its files. */
  def rowLevelPruning(target: Table, settings: MetastoreConf): RowLevelPruning =
    RowLevelPruning.allowed(settings, TableFormats.open(target).fold(Map.empty[String, String])(_.properties))

  private def targetOf(node: LogicalPlan): Option[Table] = node match {
    case command: V2WriteCommand => RowLevelTarget.fromCommand(command)
    case _ => None
  }

  private def isStream(plan: LogicalPlan): Boolean =
    plan.isStreaming || plan.exists(_.getClass.getName.contains(".streaming."))

  private def isWrite(node: LogicalPlan): Boolean =
    node.isInstanceOf[Command] || rowLevelNodes(className(node)) || isFormatCommand(node)

  private def isFormatCommand(node: LogicalPlan): Boolean = TableFormats.all.exists(_.isCommand(node))

  private def className(node: LogicalPlan): String = node.getClass.getSimpleName
}
