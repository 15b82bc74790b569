package org.metastore.spark.pruning

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeReference, Cast, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LocalRelation, LogicalPlan, OneRowRelation, Project, Statistics}
import org.apache.spark.sql.types.{BooleanType, DataType, StructType}

/** A table that has columns and nothing else. */
private final case class ProbeTable(override val output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/** Reads filters as a query over a table with these columns would: parsed, analyzed, optimized, split into conjuncts. */
private[spark] final class FilterReader(spark: SparkSession, schema: StructType) {

  /** @throws org.apache.spark.sql.AnalysisException if it is no filter over these columns */
  def conjuncts(filter: String): Seq[Expression] = {
    val table = ProbeTable(schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)()))
    val parsed = spark.sessionState.sqlParser.parseExpression(filter)
    val optimized = spark.sessionState.executePlan(Filter(parsed, table)).optimizedPlan
    if (isEmpty(optimized)) Seq(Literal(false, BooleanType))
    else optimized.collect { case Filter(condition, _) => split(condition) }.flatten
  }

  /** The values of constant expressions, each cast to its type, as Catalyst holds them. */
  def values(constants: Seq[(String, DataType)]): Seq[Any] =
    constants.grouped(FilterReader.ConstantsAPlan).flatMap(inOnePlan).toSeq

  private def inOnePlan(constants: Seq[(String, DataType)]): Seq[Any] = {
    val timeZone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val columns = constants.map { case (text, dataType) =>
      Alias(Cast(spark.sessionState.sqlParser.parseExpression(text), dataType, timeZone), "value")()
    }
    val plan = Project(columns, OneRowRelation())
    val row: InternalRow = spark.sessionState.executePlan(plan).executedPlan.executeCollect()(0).copy()
    constants.zipWithIndex.map { case ((_, dataType), i) => row.get(i, dataType) }
  }

  private def isEmpty(plan: LogicalPlan): Boolean = plan.collectFirst { case local: LocalRelation => local.data.isEmpty }.contains(true)

  private def split(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => split(left) ++ split(right)
    case other => Seq(other)
  }
}

private object FilterReader {
  private val ConstantsAPlan = 500
}
