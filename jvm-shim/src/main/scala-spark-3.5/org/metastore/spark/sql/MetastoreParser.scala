package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.parser.ParserInterface

/** The parser of Spark 3.5, which binds parameter markers after parsing: nothing to add. */
final class MetastoreParser(delegate: ParserInterface) extends ParserWrapper(delegate)

object MetastoreParser {

  /** Wraps a parser once: the extension may be applied twice to one session. */
  def apply(delegate: ParserInterface): ParserInterface = delegate match {
    case ours: MetastoreParser => ours
    case other => new MetastoreParser(other)
  }
}
