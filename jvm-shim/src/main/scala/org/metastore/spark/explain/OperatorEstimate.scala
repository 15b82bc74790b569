package org.metastore.spark.explain

import java.util.UUID

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{
  CollectMetrics, Command, Filter, GlobalLimit, LeafNode, LocalLimit, LogicalPlan, Project
}
import org.apache.spark.sql.execution.{CommandExecutionMode, SQLExecution}

import org.metastore.spark.pruning.ScanEstimate
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.QueryPermission

/** What the optimizer expects of one operator of a query; a row of `metastore.estimates(query)`. */
final case class OperatorEstimate(
    operator: Int,
    parent: Option[Int],
    name: String,
    detail: String,
    rows: Option[BigInt],
    bytes: BigInt,
    scan: Option[ScanEstimate],
    countedRows: Option[Long]) {

  /** How many times the estimate is off, either way; of a scan that of the filter above it tells. */
  def qError: Option[Double] = for {
    expected <- rows
    counted <- countedRows
    if scan.isEmpty
  } yield {
    val (one, other) = (math.max(1.0, expected.toDouble), math.max(1.0, counted.toDouble))
    math.max(one / other, other / one)
  }
}

object OperatorEstimate {
  private val DetailChars = 200
  private val Nowhere = -1

  /**
   * Of each operator of a query, which is analyzed now, and optimized when it is asked for.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that is not shown to this user as
   *   it is
   */
  def fromQuery(session: SparkSession, query: String, run: Boolean): () => Seq[OperatorEstimate] = {
    val plan = session.sessionState.sqlParser.parsePlan(query)
    val planned = session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
    QueryPermission.require(session, planned.analyzed)
    if (run && planned.analyzed.exists(_.isInstanceOf[Command])) {
      throw MetastoreException.invalidArgument(
        "query",
        "a command is not run to count its rows",
        "Leave analyze => true out.")
    }
    () => estimates(session, planned.optimizedPlan, run)
  }

  private def estimates(
      session: SparkSession,
      optimized: LogicalPlan,
      run: Boolean): Seq[OperatorEstimate] = {
    val counts = if (run) countRows(session, optimized) else Map.empty[Int, Long]
    for (Operator(node, place, parent, counter, isLimited) <- operators(optimized)) yield {
      val stats = node.stats
      OperatorEstimate(
        place,
        parent,
        node.nodeName,
        node.simpleString(DetailChars).take(DetailChars),
        filtered(node).orElse(stats.rowCount),
        stats.sizeInBytes,
        ScanDecisions.estimateOf(node),
        counts.get(counter).filterNot(_ => isLimited))
    }
  }

  /** What the filter of a scan leaves: Spark is told of fewer rows where a semi join is going to look for some of them. */
  private def filtered(node: LogicalPlan): Option[BigInt] =
    if (node.isInstanceOf[LeafNode] || !isScan(node)) None
    else ScanDecisions.estimateOf(node.collectLeaves().head).map(one => BigInt(math.max(1L, one.rows)))

  /** @param counter the operator whose rows are counted, which are its own too */
  private final case class Operator(
      node: LogicalPlan,
      place: Int,
      parent: Option[Int],
      counter: Int,
      isLimited: Boolean)

  private def operators(plan: LogicalPlan): Seq[Operator] = {
    var next = 0
    def below(node: LogicalPlan, parent: Option[Operator]): Seq[Operator] = {
      val place = next
      next += 1
      val counter =
        parent.fold(place)(above =>
          if (!isScan(above.node)) place
          else if (above.node.isInstanceOf[Project]) above.counter else Nowhere)
      val limits = parent.exists(above =>
        above.isLimited || above.node.isInstanceOf[GlobalLimit] || above.node.isInstanceOf[LocalLimit])
      val operator = Operator(node, place, parent.map(_.place), counter, limits)
      operator +: node.children.flatMap(below(_, Some(operator)))
    }
    below(plan, None)
  }

  /** What Spark reads as one: counted in between, it would be read without its filter, and whole. */
  private def isScan(node: LogicalPlan): Boolean = node match {
    case _: LeafNode => true
    case _: Project | _: Filter => node.children.forall(isScan)
    case _ => false
  }

  /** Runs a plan with counters on top of operators and scans, numbered in the same order. */
  private def countRows(session: SparkSession, plan: LogicalPlan): Map[Int, Long] = {
    val run = s"metastore.estimates ${UUID.randomUUID}:"
    def counting(operator: Operator, of: Map[Option[Int], Seq[Operator]]): LogicalPlan = {
      val node =
        if (isScan(operator.node)) operator.node
        else operator.node.withNewChildren(of.getOrElse(Some(operator.place), Nil).map(counting(_, of)))
      val rows = Alias(Count(Seq(Literal(1))).toAggregateExpression(), "rows")()
      CollectMetrics(run + operator.place, Seq(rows), node, 0)
    }
    val all = operators(plan)
    val execution =
      session.sessionState.executePlan(counting(all.head, all.groupBy(_.parent)), CommandExecutionMode.SKIP)
    SQLExecution.withNewExecutionId(execution, Some("metastore.estimates")) {
      execution.toRdd.foreachPartition((rows: Iterator[_]) => while (rows.hasNext) rows.next())
    }
    for ((name, row) <- execution.observedMetrics if name.startsWith(run))
      yield name.drop(run.length).toInt -> row.getLong(0)
  }
}
