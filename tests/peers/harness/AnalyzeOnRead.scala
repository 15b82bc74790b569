package org.metastore.peers

import java.io.File
import java.net.URI
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.concurrent.{Await, Promise}
import scala.concurrent.duration.Duration
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Adds to a session of a test suite what gives its queries statistics. */
class HarnessExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectCheckRule(session => new AnalyzeOnRead(session))
}

/** Analyzes each Parquet directory and each Iceberg table before the first query that reads it is planned. */
final class AnalyzeOnRead(session: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit =
    if (!plan.isStreaming) plan.collectWithSubqueries(AnalyzeOnRead.analyzable).flatten.distinct.foreach(analyze)

  /** What changed since is analyzed again. ANALYZE reads it too, and finds it in `seen`. */
  private def analyze(read: Analyzable): Unit =
    if (read.state.nonEmpty && !read.state.equals(AnalyzeOnRead.seen.put(read.name, read.state))) {
      val done = Promise[Unit]()
      val statement = s"ANALYZE TABLE ${read.name} COMPUTE STATISTICS FOR ALL COLUMNS"
      // In a thread that inherits neither the query's job group nor what Spark hands on to the threads of a query.
      val thread = new Thread(null, () => done.complete(Try(run(statement))), "analyze-on-read", 0L, false)
      thread.setDaemon(true)
      thread.start()
      try {
        Await.result(done.future, Duration(AnalyzeOnRead.Seconds, TimeUnit.SECONDS))
        Counts.add("analyzed")
      } catch {
        case NonFatal(error) => Counts.failed(s"${read.name}: ${String.valueOf(error.getMessage).linesIterator.take(1).mkString}")
      }
    }

  private def run(statement: String): Unit = {
    SparkSession.setActiveSession(session)
    session.sql(statement).collect()
  }
}

/** Something that ANALYZE takes, by its name, and what tells whether it changed. */
final case class Analyzable(name: String, state: Seq[String])

object AnalyzeOnRead {
  private val Seconds = 120L
  private val seen = new ConcurrentHashMap[String, Seq[String]]()

  private val IcebergTable = "org.apache.iceberg.spark.source.SparkTable"

  private val analyzable: PartialFunction[LogicalPlan, Seq[Analyzable]] = {
    case relation: LogicalRelation => relation.relation match {
        case HadoopFsRelation(location, _, _, _, format, _) if format.getClass == classOf[ParquetFileFormat] =>
          location.rootPaths.filter(path => isLocal(path.toUri) && new File(path.toUri.getPath).isDirectory).map(directory)
        case _ => Nil
      }
    case DataSourceV2Relation(table, _, Some(catalog), Some(identifier), _, _) if table.getClass.getName == IcebergTable =>
      val name = (catalog.name +: identifier.namespace :+ identifier.name).map(quote).mkString(".")
      Seq(Analyzable(name, Seq(String.valueOf(table.id), String.valueOf(table.version))))
  }

  private def directory(path: Path): Analyzable =
    Analyzable(s"parquet.${quote(path.toString)}", filesBelow(new File(path.toUri.getPath)))

  private def quote(name: String): String = s"`${name.replace("`", "``")}`"

  private def isLocal(uri: URI): Boolean = Option(uri.getScheme).forall(_ == "file")

  private def filesBelow(directory: File): Seq[String] =
    Option(directory.listFiles).toSeq.flatten.filterNot(file => file.getName.startsWith("_") || file.getName.startsWith("."))
      .flatMap { file =>
        if (file.isDirectory) filesBelow(file) else Seq(s"$file ${file.length} ${file.lastModified}")
      }.sorted
}
