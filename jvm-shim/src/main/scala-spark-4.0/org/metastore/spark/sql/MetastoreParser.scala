package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.StructType

/** The parser of Spark 4.0, which binds parameter markers after parsing, as 3.5 does. */
final class MetastoreParser(delegate: ParserInterface, early: LogicalPlan => LogicalPlan)
  extends ParserWrapper(delegate, early) {

  /** Parsers of other extensions leave it out, and none adds to it: Spark's own answers. */
  override def parseRoutineParam(sqlText: String): StructType = CatalystSqlParser.parseRoutineParam(sqlText)
}

object MetastoreParser {

  /** Wraps a parser once: the extension may be applied twice to one session. */
  def apply(
      delegate: ParserInterface,
      early: LogicalPlan => LogicalPlan = identity): ParserInterface = delegate match {
    case ours: MetastoreParser => ours
    case other => new MetastoreParser(other, early)
  }
}
