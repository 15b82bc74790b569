package org.metastore.spark.python

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

/** A task about one table for a Python process of the driver. */
trait PythonStatement {
  def table: String

  /** Whether a user typed it. */
  def isInteractive: Boolean = true

  /** Whether a user waits for it. */
  def isWaitedFor: Boolean = true

  /** Adds the fields of the statement to a node that has the table. */
  protected def fill(node: ObjectNode): Unit

  /** The statement as one line of JSON; `progress`: Python reports how far it is. */
  final def json(progress: Boolean): String = {
    val node = PythonStatement.mapper.createObjectNode().put("table", table).put("progress", progress)
    fill(node)
    PythonStatement.mapper.writeValueAsString(node)
  }
}

private[python] object PythonStatement {
  val mapper = new ObjectMapper()
}

/** Computes the statistics of the rows of a query over one table. */
final case class FilteredSummaryStatement(table: String, query: String) extends PythonStatement {
  override protected def fill(node: ObjectNode): Unit = {
    node.put("filtered", query)
    ()
  }
}

/**
 * Compares two snapshots of a table.
 *
 * @param added         compares the data files that came after the first snapshot with the table at that
 *                      snapshot
 * @param distributions measures how far the distributions of values have moved, too
 */
final case class DiffStatement(
    table: String,
    before: String,
    after: String,
    added: Boolean,
    distributions: Boolean)
  extends PythonStatement {

  override protected def fill(node: ObjectNode): Unit = {
    node.putArray("snapshots").add(before).add(after)
    node.put("added", added).put("distributions", distributions)
    ()
  }
}
