package org.metastore.spark.analyze

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * One ANALYZE of one table, as the Python side is told of it.
 *
 * @param table      full name, parts quoted where they must be
 * @param columns    FOR COLUMNS; `None`: not written
 * @param allColumns FOR ALL COLUMNS
 * @param noScan     NOSCAN
 * @param partition  PARTITION: column to value; a value of null is the partition of nulls, `None` was written without a
 *                   value and stands for every one
 */
final case class AnalyzeStatement(
    table: String, columns: Option[Seq[String]], allColumns: Boolean, noScan: Boolean,
    partition: Map[String, Option[String]]) {

  /** One line of JSON; `progress`: whether somebody wants to hear how far it is. */
  def json(progress: Boolean): String = {
    val mapper = AnalyzeStatement.mapper
    val node: ObjectNode = mapper.createObjectNode()
    node.put("table", table).put("all_columns", allColumns).put("noscan", noScan).put("progress", progress)
    columns.foreach(names => names.foldLeft(node.putArray("columns"))((array, name) => array.add(name)))
    partition.keys.foldLeft(node.putArray("partition_columns"))((array, name) => array.add(name))
    partition.foldLeft(node.putObject("partition")) {
      case (values, (name, Some(value))) => values.put(name, value)
      case (values, _) => values
    }
    mapper.writeValueAsString(node)
  }
}

object AnalyzeStatement {
  private[analyze] val mapper = new ObjectMapper()
}
