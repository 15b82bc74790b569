package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.DataType

import org.metastore.spark.reason.Injection

/** A user's function that gives back its argument, and fails while a rule of ours asks about it. */
case class FailingIdentity(child: Expression) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = passing(child.dataType)
  override def foldable: Boolean = passing(child.foldable)
  override def nullable: Boolean = passing(child.nullable)
  override def references: AttributeSet = passing(child.references)
  override def sql: String = passing(super.sql)

  override protected def nullSafeEval(value: Any): Any = value

  override protected def withNewChildInternal(newChild: Expression): FailingIdentity = copy(newChild)

  private def passing[A](value: A): A = {
    Injection.passBelow()
    value
  }
}

object FailingIdentity {

  /** Makes it a function of a session. */
  def register(session: SparkSession, name: String): Unit =
    session.sessionState.functionRegistry.createOrReplaceTempFunction(
      name,
      arguments => FailingIdentity(arguments.head),
      "scala_udf")
}
