package org.metastore.spark.explain

import java.util.UUID

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{
  CollectMetrics, Command, Filter, GlobalLimit, LeafNode, LocalLimit, LogicalPlan, Project
}
import org.apache.spark.sql.execution.SQLExecution

import org.metastore.spark.pruning.ScanEstimate
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.QueryPermission

/** The optimizer's estimate for one operator of a query; a row of `metastore.estimates(query)`. */
final case class OperatorEstimate(
    operator: Int,
    parent: Option[Int],
    name: String,
    detail: String,
    rows: Option[BigInt],
    bytes: BigInt,
    scan: Option[ScanEstimate],
    countedRows: Option[Long]) {

  /**
   * The factor between estimated and counted rows, at least 1. None for a scan: its estimate counts the rows
   * after its filter.
   */
  def qError: Option[Double] = for {
    estimated <- rows
    counted <- countedRows
    if scan.isEmpty
  } yield {
    val estimate = math.max(1.0, estimated.toDouble)
    val count = math.max(1.0, counted.toDouble)
    math.max(estimate / count, count / estimate)
  }
}

object OperatorEstimate {
  private val DetailChars = 200

  /**
   * The estimates of a query's operators. The query is analyzed now. It is optimized, and run to count rows,
   * when the result is called.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that a policy
   *   partly hides from this user
   */
  def fromQuery(session: SparkSession, query: String, run: Boolean): () => Seq[OperatorEstimate] = {
    val planned = PlannedQuery.fromText(session, query)
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
    for (operator <- operators(optimized)) yield {
      val node = operator.node
      val stats = node.stats
      OperatorEstimate(
        operator.number,
        operator.parent,
        node.nodeName,
        node.simpleString(DetailChars).take(DetailChars),
        rowsOfScan(node).orElse(stats.rowCount),
        stats.sizeInBytes,
        ScanDecisions.estimateOf(node),
        operator.counter.flatMap(counts.get))
    }
  }

  /** The rows that pass a scan's filter: below a semi join, Spark gets a smaller number. */
  private def rowsOfScan(node: LogicalPlan): Option[BigInt] =
    if (node.isInstanceOf[LeafNode] || !isScan(node)) None
    else {
      val estimate = ScanDecisions.estimateOf(node.collectLeaves().head)
      estimate.map(scanEstimate => BigInt(math.max(1L, scanEstimate.rows)))
    }

  /**
   * An operator of a plan.
   *
   * @param number  its number, from the root down
   * @param counter the number of the operator whose counter counts its rows; None if no counter does
   */
  private final case class Operator(
      node: LogicalPlan,
      number: Int,
      parent: Option[Int],
      counter: Option[Int])

  private def operators(plan: LogicalPlan): Seq[Operator] = {
    val all = Seq.newBuilder[Operator]
    var next = 0
    def add(node: LogicalPlan, parent: Option[Operator], isLimited: Boolean): Unit = {
      val counter = if (isLimited) None else counterOf(next, parent)
      val operator = Operator(node, next, parent.map(_.number), counter)
      all += operator
      next += 1
      for (child <- node.children) add(child, Some(operator), isLimited || isLimit(node))
    }
    add(plan, None, isLimited = false)
    all.result()
  }

  private def counterOf(number: Int, parent: Option[Operator]): Option[Int] = parent match {
    case Some(operator) if isScan(operator.node) =>
      if (operator.node.isInstanceOf[Project]) operator.counter else None
    case _ => Some(number)
  }

  private def isLimit(node: LogicalPlan): Boolean =
    node.isInstanceOf[GlobalLimit] || node.isInstanceOf[LocalLimit]

  /** Whether Spark plans an operator as part of its scan: a counter would keep a filter from the scan. */
  private def isScan(node: LogicalPlan): Boolean = node match {
    case _: LeafNode => true
    case _: Project | _: Filter => node.children.forall(isScan)
    case _ => false
  }

  /** Runs a plan with a counter above each operator and scan; the rows by the operator's number. */
  private def countRows(session: SparkSession, plan: LogicalPlan): Map[Int, Long] = {
    val prefix = s"metastore.estimates ${UUID.randomUUID}:"
    val all = operators(plan)
    val childrenOf = all.groupBy(_.parent)
    def withCounters(operator: Operator): LogicalPlan = {
      val node =
        if (isScan(operator.node)) operator.node
        else {
          val children = childrenOf.getOrElse(Some(operator.number), Nil)
          operator.node.withNewChildren(children.map(withCounters(_)))
        }
      val rows = Alias(Count(Seq(Literal(1))).toAggregateExpression(), "rows")()
      CollectMetrics(prefix + operator.number, Seq(rows), node, 0)
    }
    val execution = PlannedQuery.fromPlan(session, withCounters(all.head))
    SQLExecution.withNewExecutionId(execution, Some("metastore.estimates")) {
      execution.toRdd.foreachPartition((rows: Iterator[_]) => while (rows.hasNext) rows.next())
    }
    for ((name, row) <- execution.observedMetrics if name.startsWith(prefix))
      yield name.drop(prefix.length).toInt -> row.getLong(0)
  }
}
