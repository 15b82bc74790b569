package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.types.{DataType, StructType}

import org.metastore.spark.conf.MetastoreConf

/**
 * Spark's parser, or the parser that another extension put before it. Our names are rewritten for it first.
 *
 * @param early the rules that run before Spark resolves names, if Spark has no other place for them
 */
abstract class ParserWrapper(delegate: ParserInterface, early: LogicalPlan => LogicalPlan)
  extends ParserInterface {

  override def parsePlan(sqlText: String): LogicalPlan = parseStatement(sqlText)(delegate.parsePlan)

  /** Parses a statement with our names in it; SET may give no setting of ours a wrong value. */
  protected def parseStatement(sqlText: String)(parse: String => LogicalPlan): LogicalPlan = {
    val isOutermost = !ParserWrapper.isParsing.get
    ParserWrapper.isParsing.set(true)
    val plan =
      try PartitionClause.parse(FunctionNames.rewrite(sqlText), parse)
      finally ParserWrapper.isParsing.set(!isOutermost)
    plan match {
      // A parser of another extension may wrap the error of a parser inside of it.
      case SetCommand(Some((key, Some(text)))) if isOutermost => MetastoreConf.requireSettable(key, text)
      case _ =>
    }
    early(plan)
  }

  override def parseQuery(sqlText: String): LogicalPlan = delegate.parseQuery(FunctionNames.rewrite(sqlText))

  override def parseExpression(sqlText: String): Expression =
    delegate.parseExpression(FunctionNames.rewrite(sqlText))

  override def parseTableIdentifier(sqlText: String): TableIdentifier = delegate.parseTableIdentifier(sqlText)

  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier =
    delegate.parseFunctionIdentifier(sqlText)

  override def parseMultipartIdentifier(sqlText: String): Seq[String] =
    delegate.parseMultipartIdentifier(sqlText)

  override def parseTableSchema(sqlText: String): StructType = delegate.parseTableSchema(sqlText)

  override def parseDataType(sqlText: String): DataType = delegate.parseDataType(sqlText)
}

private object ParserWrapper {

  /**
   * Whether one of our parsers runs in this thread: there are some inside and outside of other extensions'
   * parsers.
   */
  val isParsing: ThreadLocal[Boolean] = ThreadLocal.withInitial(() => false)
}
