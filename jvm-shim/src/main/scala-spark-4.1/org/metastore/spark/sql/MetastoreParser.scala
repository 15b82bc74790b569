package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.parser.{
  AbstractSqlParser, CatalystSqlParser, ParameterContext, ParameterHandler, ParseException, ParserInterface
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
        case other => other.parsePlan(substitute(text, parameters))
      }
    }

  /**
   * The statement with values for its parameter markers. Spark reads it with its own grammar to find them: a
   * statement that only another extension's grammar has, such as Delta's RESTORE, stays as it is.
   */
  private def substitute(text: String, parameters: ParameterContext): String =
    try ParameterHandler.substituteParameters(text, parameters)._1
    catch { case _: ParseException => text }

  /**
   * Parsers of other extensions leave it out (Iceberg 1.12.0), and no extension adds to it: Spark's own
   * answers.
   */
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
