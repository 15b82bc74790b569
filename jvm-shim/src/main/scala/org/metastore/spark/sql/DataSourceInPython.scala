package org.metastore.spark.sql

import java.util.Locale

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.SupportsRead
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.analyze.PythonInterpreter
import org.metastore.spark.tables.Reflection
import org.metastore.spark.tables.TableFormats

/**
 * Finds `spark.read.format("metastore")` as Spark does, and says in one line what is wrong with it: Spark wraps what a data source
 * in Python raises into a line of its own, and asks the Python of its workers for data sources, which is `python3` of the PATH
 * where nobody named another, whatever Python the driver runs in.
 *
 * A rule for hints, because these come before the rule of Spark's that does the same.
 */
final class DataSourceErrorRule(session: SparkSession) extends Rule[LogicalPlan] {
  private val Unresolved = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource"
  private lazy val finding = Reflection.load("org.apache.spark.sql.catalyst.analysis.ResolveDataSource", getClass.getClassLoader)
    .getConstructors.head.newInstance(session).asInstanceOf[Rule[LogicalPlan]]

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case source if isOurs(source) => withClearErrors {
      val found = finding(source)
      found.foreach {
        case relation: DataSourceV2Relation if isReadInPython(relation) => read(relation)
        case _ =>
      }
      found
    }
  }

  private def isOurs(node: LogicalPlan): Boolean = node.getClass.getName == Unresolved && (node.productElement(0) match {
    case source: String => source.toLowerCase(Locale.ROOT) == "metastore"
    case _ => false
  })

  private def isReadInPython(relation: DataSourceV2Relation): Boolean = {
    val named = relation.options.asCaseSensitiveMap.asScala.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    named.get("path").orElse(named.get("table")).forall(TableFormats.isLocation)
  }

  /** Has Spark make the source's reader, which it keeps: what is wrong with a location is found when a task would begin. */
  private def read(relation: DataSourceV2Relation): Unit = relation.table match {
    case readable: SupportsRead => readable.newScanBuilder(relation.options).build().toBatch.planInputPartitions()
    case _ =>
  }

  private def withClearErrors(find: => LogicalPlan): LogicalPlan = try find catch {
    case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
      throw MetastoreException.sourceNotFound(PythonInterpreter.of(session.sparkContext).command, e)
    case e: Exception => throw MetastoreException.fromPython(e).getOrElse(e)
  }
}

object DataSourceErrorRule {

  /** Before Spark 4.1 there is no place for rules that come so early: Spark's own errors stay. */
  def inject(extensions: SparkSessionExtensions): Unit = {
    val rule: SparkSession => Rule[LogicalPlan] = new DataSourceErrorRule(_)
    Try(Reflection.call[AnyRef](extensions, "injectHintResolutionRule", rule))
  }
}
