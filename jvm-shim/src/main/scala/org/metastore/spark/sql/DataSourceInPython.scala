package org.metastore.spark.sql

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.DataSource

import org.metastore.spark.analyze.Interpreter
import org.metastore.spark.tables.Reflected

/**
 * Says what to set where `spark.read.format("metastore")` is not found: Spark asks the Python of its workers for data sources,
 * which is `python3` of the PATH where nobody named another, whatever Python the driver runs in.
 *
 * A rule for hints, because these come before the rule of Spark's that raises DATA_SOURCE_NOT_FOUND.
 */
final class DataSourceInPython(session: SparkSession) extends Rule[LogicalPlan] {
  private val Unresolved = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource"

  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.exists(isOurs)) {
      try DataSource.lookupDataSource("metastore", session.sessionState.conf)
      catch {
        case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
          throw MetastoreException.sourceNotFound(Interpreter.of(session.sparkContext).command, e)
      }
    }
    plan
  }

  private def isOurs(node: LogicalPlan): Boolean = node.getClass.getName == Unresolved && (node.productElement(0) match {
    case source: String => source.toLowerCase(Locale.ROOT) == "metastore"
    case _ => false
  })
}

object DataSourceInPython {

  /** Before Spark 4.1 there is no place for rules that come so early: Spark's own error stays. */
  def inject(extensions: SparkSessionExtensions): Unit = {
    val rule: SparkSession => Rule[LogicalPlan] = new DataSourceInPython(_)
    Try(Reflected.call[AnyRef](extensions, "injectHintResolutionRule", rule))
  }
}
