package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, StructType}

/** Spark's parser, or the one that another extension put before it, with our names made readable to it first. */
abstract class ParserWrapper(delegate: ParserInterface) extends ParserInterface {

  override def parsePlan(sqlText: String): LogicalPlan =
    PartitionClause.parse(FunctionNames.rewrite(sqlText), delegate.parsePlan)

  override def parseQuery(sqlText: String): LogicalPlan = delegate.parseQuery(FunctionNames.rewrite(sqlText))

  override def parseExpression(sqlText: String): Expression = delegate.parseExpression(FunctionNames.rewrite(sqlText))

  override def parseTableIdentifier(sqlText: String): TableIdentifier = delegate.parseTableIdentifier(sqlText)

  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier = delegate.parseFunctionIdentifier(sqlText)

  override def parseMultipartIdentifier(sqlText: String): Seq[String] = delegate.parseMultipartIdentifier(sqlText)

  override def parseTableSchema(sqlText: String): StructType = delegate.parseTableSchema(sqlText)

  override def parseDataType(sqlText: String): DataType = delegate.parseDataType(sqlText)
}
