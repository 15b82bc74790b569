package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** The parser of Spark 3.5, which binds parameter markers after parsing: nothing to add. */
final class MetastoreParser(delegate: ParserInterface, early: LogicalPlan => LogicalPlan)
  extends ParserWrapper(delegate, early)

object MetastoreParser {

  /** Wraps a parser once: the extension may be applied twice to one session. */
  def apply(
      delegate: ParserInterface,
      early: LogicalPlan => LogicalPlan = identity): ParserInterface = delegate match {
    case ours: MetastoreParser => ours
    case other => new MetastoreParser(other, early)
  }
}
