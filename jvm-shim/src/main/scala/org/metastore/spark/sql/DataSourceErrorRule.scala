package org.metastore.spark.sql

import java.util.Locale

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.SupportsRead
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.metastore.spark.conf.PythonInterpreter
import org.metastore.spark.reason.MetastoreException
import org.metastore.spark.tables.TableFormats

/** Resolves `spark.read.format("metastore")` as Spark does, with one-line errors. */
final class DataSourceErrorRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case source @ NamedSource(name) if name.toLowerCase(Locale.ROOT) == "metastore" =>
      withClearErrors {
        val resolved = NamedSource.resolve(source, session)
        resolved.foreach {
          case relation: DataSourceV2Relation if isReadInPython(relation) => read(relation)
          case _ =>
        }
        resolved
      }
  }

  private def isReadInPython(relation: DataSourceV2Relation): Boolean =
    SourceOptions.subject(SourceOptions.fromRelation(relation)).forall(TableFormats.isLocation)

  /** Makes Spark create the source's reader now, so that a bad location fails here and not in a task. */
  private def read(relation: DataSourceV2Relation): Unit = relation.table match {
    case readable: SupportsRead =>
      readable.newScanBuilder(relation.options).build().toBatch.planInputPartitions()
    case _ =>
  }

  private def withClearErrors(find: => LogicalPlan): LogicalPlan =
    try find
    catch {
      case e: Exception if MetastoreException.firstLine(e).startsWith("[DATA_SOURCE_NOT_FOUND]") =>
        throw MetastoreException.sourceNotFound(
          PythonInterpreter.candidates(session.sparkContext).map(_.command),
          e)
      case e: Exception => throw MetastoreException.fromPython(e).getOrElse(e)
    }
}
