package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.parser.{
  AbstractSqlParser, CatalystSqlParser, ParameterContext, ParameterHandler, ParserInterface
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.StructType

/**
 * The parser of Spark 4.1 and later, which binds parameter markers while parsing: `spark.sql` calls
 * `parsePlanWithParameters`.
 */
final class MetastoreParser(delegate: ParserInterface, early: LogicalPlan => LogicalPlan)
  extends ParserWrapper(delegate, early) {

  override def parsePlanWithParameters(sqlText: String, parameters: ParameterContext): LogicalPlan =
    parseStatement(sqlText) { text =>
      delegate match {
        case spark: AbstractSqlParser => spark.parsePlanWithParameters(text, parameters)
        case other => other.parsePlan(ParameterHandler.substituteParameters(text, parameters)._1)
      }
    }

  /** Parsers of other extensions leave it out (Iceberg 1.12.0), and no extension adds to it: Spark's own answers. */
  override def parseRoutineParam(sqlText: String): StructType = CatalystSqlParser.parseRoutineParam(sqlText)
}

object MetastoreParser {

  /** Wraps a parser once: the extension may be applied twice to one session. */
  def apply(
      delegate: ParserInterface,
      early: LogicalPlan => LogicalPlan = identity): ParserInterface = delegate match {
    case ours: MetastoreParser => ours
    case LaterParser(_) => delegate
    case other => LaterParser.complete(new MetastoreParser(other, early))
  }
}
