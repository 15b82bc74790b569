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

/** Adds to a session of a test suite what gives its queries statistics. */
class HarnessExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectCheckRule(session => new AnalyzeOnRead(session))
}

/** Analyzes each Parquet directory before the first query that reads it is planned. */
final class AnalyzeOnRead(session: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit =
    if (!plan.isStreaming) plan.collectWithSubqueries(AnalyzeOnRead.directories).flatten.distinct.foreach(analyze)

  /** A directory whose files changed since is analyzed again. ANALYZE reads it too, and finds it in `seen`. */
  private def analyze(directory: Path): Unit = {
    val files = AnalyzeOnRead.filesBelow(new File(directory.toUri.getPath))
    if (files.nonEmpty && !files.equals(AnalyzeOnRead.seen.put(directory, files))) {
      val done = Promise[Unit]()
      val statement = s"ANALYZE TABLE parquet.`${directory.toString.replace("`", "``")}` COMPUTE STATISTICS FOR ALL COLUMNS"
      // In a thread that inherits neither the query's job group nor what Spark hands on to the threads of a query.
      val thread = new Thread(null, () => done.complete(Try(run(statement))), "analyze-on-read", 0L, false)
      thread.setDaemon(true)
      thread.start()
      try {
        Await.result(done.future, Duration(AnalyzeOnRead.Seconds, TimeUnit.SECONDS))
        Counts.add("analyzed")
      } catch {
        case NonFatal(error) => Counts.failed(s"$directory: ${String.valueOf(error.getMessage).linesIterator.take(1).mkString}")
      }
    }
  }

  private def run(statement: String): Unit = {
    SparkSession.setActiveSession(session)
    session.sql(statement).collect()
  }
}

object AnalyzeOnRead {
  private val Seconds = 120L
  private val seen = new ConcurrentHashMap[Path, Seq[String]]()

  private val directories: PartialFunction[LogicalPlan, Seq[Path]] = {
    case relation: LogicalRelation => relation.relation match {
        case HadoopFsRelation(location, _, _, _, format, _) if format.getClass == classOf[ParquetFileFormat] =>
          location.rootPaths.filter(path => isLocal(path.toUri) && new File(path.toUri.getPath).isDirectory)
        case _ => Nil
      }
  }

  private def isLocal(uri: URI): Boolean = Option(uri.getScheme).forall(_ == "file")

  private def filesBelow(directory: File): Seq[String] =
    Option(directory.listFiles).toSeq.flatten.filterNot(file => file.getName.startsWith("_") || file.getName.startsWith("."))
      .flatMap { file =>
        if (file.isDirectory) filesBelow(file) else Seq(s"$file ${file.length} ${file.lastModified}")
      }.sorted
}
