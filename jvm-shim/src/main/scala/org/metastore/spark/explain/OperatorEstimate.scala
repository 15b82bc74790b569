package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{CollectMetrics, Command, GlobalLimit, LocalLimit, LogicalPlan}
import org.apache.spark.sql.execution.{CommandExecutionMode, SQLExecution}

import org.metastore.spark.adapter.ScanDecisions
import org.metastore.spark.sql.{MetastoreException, ReadPermission}

/**
 * What the optimizer expects of one operator of a query; a row of `metastore.estimates(query)`.
 *
 * @param operator place in the optimized plan, from 0, each before its inputs
 * @param parent   the operator that takes its rows
 * @param detail   the operator as EXPLAIN shows it
 * @param rows     rows expected, where anything is known; `bytes` their size
 * @param scan     of a scan with statistics: the rows that satisfy its filter, which stands above it
 * @param found    rows that it gave when the query ran; none where it did not run, nothing was counted, or below a LIMIT,
 *                 where it gives as many as are asked for
 */
final case class OperatorEstimate(
    operator: Int, parent: Option[Int], name: String, detail: String, rows: Option[BigInt], bytes: BigInt,
    scan: Option[ScanEstimate], found: Option[Long]) {

  /** How many times the estimate is off, either way; of a scan that of the filter above it tells. */
  def qError: Option[Double] = for (expected <- rows; counted <- found; if scan.isEmpty) yield {
    val (one, other) = (math.max(1.0, expected.toDouble), math.max(1.0, counted.toDouble))
    math.max(one / other, other / one)
  }
}

object OperatorEstimate {
  private val DetailChars = 200

  /**
   * Of each operator of a query.
   *
   * @param run whether the query is run, to count what comes; its rows go nowhere
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that is not shown to this
   *                                               user as it is
   */
  def of(session: SparkSession, query: String, run: Boolean): Seq[OperatorEstimate] = {
    val plan = session.sessionState.sqlParser.parsePlan(query)
    val planned = session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
    ReadPermission.requireOfAll(session, planned.analyzed)
    if (run && planned.analyzed.exists(_.isInstanceOf[Command])) {
      throw MetastoreException.invalidArgument("query", "a command is not run to count its rows", "Leave analyze => true out.")
    }
    val optimized = planned.optimizedPlan
    val counts = if (run) counted(session, optimized) else Map.empty[Int, Long]
    operators(optimized).map { case Operator(node, place, parent, isLimited) =>
      val stats = node.stats
      OperatorEstimate(
        place, parent, node.nodeName, node.simpleString(DetailChars).take(DetailChars), stats.rowCount, stats.sizeInBytes,
        ScanDecisions.estimateOf(node), counts.get(place).filterNot(_ => isLimited))
    }
  }

  private final case class Operator(node: LogicalPlan, place: Int, parent: Option[Int], isLimited: Boolean)

  private def operators(plan: LogicalPlan): Seq[Operator] = {
    var next = 0
    def below(node: LogicalPlan, parent: Option[Int], isLimited: Boolean): Seq[Operator] = {
      val place = next
      next += 1
      val limits = isLimited || node.isInstanceOf[GlobalLimit] || node.isInstanceOf[LocalLimit]
      Operator(node, place, parent, isLimited) +: node.children.flatMap(below(_, Some(place), limits))
    }
    below(plan, None, isLimited = false)
  }

  /** Runs a plan with a counter on top of each operator, numbered in the same order. */
  private def counted(session: SparkSession, plan: LogicalPlan): Map[Int, Long] = {
    var next = 0
    def counting(node: LogicalPlan): LogicalPlan = {
      val place = next
      next += 1
      val rows = Alias(Count(Seq(Literal(1))).toAggregateExpression(), "rows")()
      CollectMetrics(place.toString, Seq(rows), node.withNewChildren(node.children.map(counting)), 0)
    }
    val execution = session.sessionState.executePlan(counting(plan), CommandExecutionMode.SKIP)
    SQLExecution.withNewExecutionId(execution, Some("metastore.estimates")) {
      execution.toRdd.foreachPartition((rows: Iterator[_]) => rows.foreach(_ => ()))
    }
    execution.observedMetrics.map { case (place, row) => place.toInt -> row.getLong(0) }
  }
}
