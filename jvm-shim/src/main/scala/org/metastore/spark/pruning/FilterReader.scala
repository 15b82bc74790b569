package org.metastore.spark.pruning

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeReference, Cast, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LocalRelation, LogicalPlan, OneRowRelation, Project, Statistics}
import org.apache.spark.sql.types.{BooleanType, DataType, StructType}

/** A table that has columns and nothing else. */
private final case class ProbedTable(override val output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** Reads filters as a query over a table with these columns would: parsed, analyzed, optimized, split into conjuncts. */
private[pruning] final class FilterReader(spark: SparkSession, schema: StructType) {

  /** @throws org.apache.spark.sql.AnalysisException if it is no filter over these columns */
  def conjuncts(filter: String): Seq[Expression] = {
    val table = ProbedTable(schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)()))
    val parsed = spark.sessionState.sqlParser.parseExpression(filter)
    val optimized = spark.sessionState.executePlan(Filter(parsed, table)).optimizedPlan
    if (isEmpty(optimized)) Seq(Literal(false, BooleanType))
    else optimized.collect { case Filter(condition, _) => split(condition) }.flatten
  }

  /** The value of a constant expression, cast to the type, as Catalyst holds it. */
  def value(text: String, dataType: DataType): Any = {
    val parsed = spark.sessionState.sqlParser.parseExpression(text)
    val timeZone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val plan = Project(Seq(Alias(Cast(parsed, dataType, timeZone), "value")()), OneRowRelation())
    val row: InternalRow = spark.sessionState.executePlan(plan).executedPlan.executeCollect()(0)
    row.copy().get(0, dataType)
  }

  private def isEmpty(plan: LogicalPlan): Boolean = plan.collectFirst { case local: LocalRelation => local.data.isEmpty }.contains(true)

  private def split(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => split(left) ++ split(right)
    case other => Seq(other)
  }
}
